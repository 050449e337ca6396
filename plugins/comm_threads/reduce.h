#pragma once

#include <cstdint>
#include <vector>

namespace gestalt::comm_threads {

// out[i] = the sum, maximum or minimum (GESTALT_REDUCE_) of in[k][i] in order of k, for begin <= i < end. bf16 and f16 are
// summed in f32 and rounded once. Every element is read from all inputs before it is written, so `out` may be one of them.
void reduce_elements(uint32_t dtype, int32_t op, const std::vector<const void*>& in, const std::vector<void*>& out,
                     int64_t begin, int64_t end);

}  // namespace gestalt::comm_threads
