#pragma once

// One include for Catch2 2 (Debian 12) and 3, with version 2's spelling of Approx.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
