// Counter-based random numbers: the same bits in C++ and CUDA, with every compiler, flag and layout of the work.
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11) turns a key of 64
// bits and a counter of 4 x 32 bits into 4 x 32 random bits. There is no state: nothing to save but the seed and the
// step.
//
// Key and counter of what Gestalt draws:
//   per token (dropout)   key: seed, with the step's high half xor-ed into the seed's high half
//                         counter: step's low half | sample | position | use << 20 | column / 4
//                         word column % 4. use < 4096 tells the places of a model apart, columns < 2^22.
//   per attention score   key: seed xor kPhiloxScores, with the step's high half xor use xor-ed into the high half
//                         counter: step's low half | query's sample | query's position | head << 20 | key / 4
//                         word key % 4. head < 4096; key is the position of the key token, < 2^22.
//   per tensor element    key: seed xor kPhiloxTensors, with the step's high half xor-ed in as above
//                         counter: step's low half | (element / 4) low | high | use; word element % 4
//   per parameter element key: seed xor kPhiloxParameters
//                         counter: (element / 4) low | high | name hash low | high; word element % 4
//
// Uniforms take 24 bits, so they are exact. Normals are computed in integers and converted once: no library function,
// no floating-point operation that a compiler could contract or reorder.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define GESTALT_HD __host__ __device__ inline
#else
#define GESTALT_HD inline
#endif

namespace gestalt {

struct PhiloxBlock {
  uint32_t word[4];
};

GESTALT_HD PhiloxBlock philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = static_cast<uint32_t>(b);
    c2 = n2;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Columns 4 * column_block to 4 * column_block + 3 of a token. sample and position are the token's entry of "keys".
GESTALT_HD PhiloxBlock philox_token(uint64_t seed, uint64_t step, uint32_t sample, uint32_t position, uint32_t use,
                                    uint32_t column_block) {
  return philox(seed ^ (step >> 32 << 32), static_cast<uint32_t>(step), sample, position, use << 20 | column_block);
}

constexpr uint64_t kPhiloxScores = 0x73636f7265732121u;

GESTALT_HD uint64_t philox_scores_key(uint64_t seed, uint64_t step, uint32_t use) {
  return seed ^ kPhiloxScores ^ ((step >> 32 ^ use) << 32);
}

// The scores of a query with keys 4 * key_block to 4 * key_block + 3 in one head.
GESTALT_HD PhiloxBlock philox_scores(uint64_t seed, uint64_t step, uint32_t use, uint32_t sample, uint32_t position,
                                     uint32_t head, uint32_t key_block) {
  return philox(philox_scores_key(seed, step, use), static_cast<uint32_t>(step), sample, position,
                head << 20 | key_block);
}

constexpr uint64_t kPhiloxTensors = 0x74656e736f727321u;

// Elements 4 * element_block to 4 * element_block + 3, row by row, of a tensor drawn in a step.
GESTALT_HD PhiloxBlock philox_tensor(uint64_t seed, uint64_t step, uint32_t use, uint64_t element_block) {
  return philox(seed ^ kPhiloxTensors ^ (step >> 32 << 32), static_cast<uint32_t>(step),
                static_cast<uint32_t>(element_block), static_cast<uint32_t>(element_block >> 32), use);
}

constexpr uint64_t kPhiloxParameters = 0x706172616d657465u;

// Elements 4 * element_block to 4 * element_block + 3 of the logical tensor with this philox_name_hash.
GESTALT_HD PhiloxBlock philox_parameter(uint64_t seed, uint64_t name_hash, uint64_t element_block) {
  return philox(seed ^ kPhiloxParameters, static_cast<uint32_t>(element_block),
                static_cast<uint32_t>(element_block >> 32), static_cast<uint32_t>(name_hash),
                static_cast<uint32_t>(name_hash >> 32));
}

// FNV-1a, 64 bits.
GESTALT_HD uint64_t philox_name_hash(const char* name, uint64_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(name[i])) * 0x100000001b3u;
  return hash;
}

// In [0, 1), a multiple of 2^-24.
GESTALT_HD float philox_uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Dropout with probability p drops where (bits >> 8) < philox_threshold(p).
GESTALT_HD uint32_t philox_threshold(double p) { return static_cast<uint32_t>(p * 0x1p24 + 0.5); }

// Standard normal in units of 2^-28: the inverse of the distribution function at (bits + 1/2) / 2^32, at most 1.3e-8
// off (tests/abi/philox_test.cpp). Magnitudes reach 6.34.
GESTALT_HD int32_t philox_normal_fixed(uint32_t bits) {
  static constexpr int32_t kCoefficients[128][6] = {
#include "gestalt/philox_normal_table.h"
  };
  // The distribution is symmetric: the lower half is looked up, the top bit is the sign.
  const bool upper = bits >> 31;
  const uint32_t q = (upper ? ~bits : bits) << 1 | 1u;  // p = q / 2^33
#ifdef __CUDA_ARCH__
  const int octave = __clz(static_cast<int>(q));
#else
  const int octave = __builtin_clz(q);
#endif
  const uint32_t w = q << octave;
  const int32_t* c = kCoefficients[octave * 4 + static_cast<int>(w >> 29 & 3u)];
  const int64_t t = static_cast<int64_t>(w & 0x1fffffffu);  // in units of 2^-29
  int64_t sum = c[5];
  for (int i = 4; i >= 0; --i) sum = c[i] + ((sum * t + (int64_t{1} << 28)) >> 29);
  return static_cast<int32_t>(upper ? sum : -sum);
}

GESTALT_HD float philox_normal(uint32_t bits) { return static_cast<float>(philox_normal_fixed(bits)) * 0x1p-28f; }

}  // namespace gestalt
