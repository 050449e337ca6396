// Random programs for property tests: views, shared uses, in-place marks, sinks, several streams, outputs kept alive.
#pragma once

#include <random>

#include "tests/program/recording.h"

namespace gestalt::core::test {

// Kernels of core ops with random workspaces.
std::vector<FakeKernel> kernels_with_workspaces(std::mt19937& random);

// Records `nodes` random ops, spread over `num_streams`, then compiles.
void record_random(Recording& r, std::mt19937& random, int nodes, int num_streams);

// Plays the schedule in the order of issue and checks that each byte read is what the value's producer wrote, that every
// two accesses of common memory are ordered by streams and events, and that outputs survive. "" or the first problem.
std::string play(const Executable& e);

}  // namespace gestalt::core::test
