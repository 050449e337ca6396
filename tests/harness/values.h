#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor/dtype.h"

namespace gestalt::harness {

using Shape = std::vector<int64_t>;

int64_t count_of(const Shape& shape);

// A tensor as plain numbers, row-major: what references compute with.
struct Values {
  Shape shape;
  std::vector<double> v;

  Values() = default;
  explicit Values(Shape s) : shape(std::move(s)), v(static_cast<size_t>(count_of(shape))) {}
  Values(Shape s, std::vector<double> values) : shape(std::move(s)), v(std::move(values)) {}

  int64_t ndim() const { return static_cast<int64_t>(shape.size()); }
  int64_t dim(int64_t i) const { return shape[static_cast<size_t>(i < 0 ? i + ndim() : i)]; }
  int64_t size() const { return static_cast<int64_t>(v.size()); }
  double& operator[](int64_t i) { return v[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return v[static_cast<size_t>(i)]; }
};

// Elements to and from bytes of a dtype, rounded to nearest even.
void encode(uint32_t dtype, double x, void* to);
double decode(uint32_t dtype, const void* from);
std::vector<unsigned char> encode(uint32_t dtype, const Values& values);
Values decode(uint32_t dtype, const Shape& shape, const std::vector<unsigned char>& bytes);
// As the dtype holds them.
void round_to(uint32_t dtype, Values& values);

// Dimensions 0 and 1 swapped, in storage.
Values swapped(const Values& x);

// Numbers that depend only on the seed (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

}  // namespace gestalt::harness
