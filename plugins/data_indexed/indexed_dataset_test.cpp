#include "plugins/data_indexed/indexed_dataset.h"

#include <cstdlib>
#include <new>

#include "core/base/host.h"
#include "gestalt/error.hpp"
#include "support/indexed/test_corpus.h"
#include "tests/catch_compat.hpp"

namespace {
int64_t num_allocations = 0;
}

// Not inlined: the compiler would take the pair apart and see new beside free.
__attribute__((noinline)) void* operator new(std::size_t size) {
  ++num_allocations;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace gestalt::data_indexed {
namespace {

using namespace support::indexed;

// The default of every key, and what a test changes.
std::unique_ptr<IndexedDataset> make(const std::vector<gestalt_attr>& changes) {
  std::vector<gestalt_attr> config(changes);
  for (const ConfigKey& key : IndexedDataset::keys) {
    bool given = false;
    for (const gestalt_attr& c : changes) given |= view_of(c.name) == key.name;
    if (given) continue;
    gestalt_attr a{};
    a.name = str_of(key.name);
    if (key.type == "i64") {
      a.kind = GESTALT_ATTR_I64;
      a.value.i = std::atoll(std::string(key.default_value).c_str());
    } else if (key.type == "f64") {
      a.kind = GESTALT_ATTR_F64;
      a.value.f = std::atof(std::string(key.default_value).c_str());
    } else if (key.type == "bool") {
      a.kind = GESTALT_ATTR_BOOL;
    } else if (key.type == "str") {
      a.kind = GESTALT_ATTR_STR;
      a.value.s = str_of(key.default_value.substr(1, key.default_value.size() - 2));
    } else {
      a.kind = GESTALT_ATTR_STR_LIST;
    }
    config.push_back(a);
  }
  return std::make_unique<IndexedDataset>(Host(core::make_host("gestalt.data_indexed")),
                                          Attrs(config.data(), config.size()));
}

struct Config {
  explicit Config(const std::string& prefix) : path(prefix), name(str_of(path)) {
    gestalt_attr paths{};
    paths.name = str_of("paths");
    paths.kind = GESTALT_ATTR_STR_LIST;
    paths.value.list = {&name, 1};
    gestalt_attr split{};
    split.name = str_of("split");
    split.kind = GESTALT_ATTR_STR;
    split.value.s = str_of("1,0,0");
    changes = {paths, split};
  }
  std::string path;
  gestalt_str name;
  std::vector<gestalt_attr> changes;
};

// Host views with room for `tokens` tokens.
struct Batch {
  explicit Batch(int64_t tokens)
      : data{std::vector<int32_t>(static_cast<size_t>(2 * tokens + 1), -9), {}, {}, {}, {}, {}} {
    for (size_t i = 1; i < 6; ++i) data[i] = data[0];
    const uint32_t types[] = {kI32, kI32, kF32, kI32, kI32, kI32};
    for (size_t i = 0; i < 6; ++i) {
      views[i] = {data[i].data(), GESTALT_DEVICE_CPU, 0, 1, types[i], &shape, &stride, 0};
      pointers[i] = &views[i];
    }
  }
  float weight(size_t i) const {
    float value;
    std::memcpy(&value, &data[2][i], sizeof value);
    return value;
  }
  std::vector<int32_t> data[6];
  int64_t shape = 0, stride = 1;
  gestalt_view views[6];
  gestalt_view* pointers[6];
};

}  // namespace

TEST_CASE("A batch is written into the views, keyed by sample and position") {
  const Config config(write_corpus("batch", {40, 40}));
  auto data = make(config.changes);
  data->open({}, 8, 1234);
  gestalt_dataset_info info{};
  data->info("train", info);
  CHECK(info.num_samples == 9);
  CHECK(info.max_tokens_per_sample == 8);
  CHECK(info.max_sequences_per_sample == 1);
  CHECK(info.num_fields == 6);
  CHECK(info.bytes_of_text == -1);
  CHECK_THROWS_AS(data->info("valid", info), Error);

  Batch batch(24);
  const int64_t samples[] = {5, 0, 7};
  const BatchSizes sizes = data->read("train", samples, batch.pointers);
  CHECK(sizes.num_tokens == 24);
  CHECK(sizes.num_sequences == 3);
  CHECK(std::vector<int32_t>(batch.data[4].begin(), batch.data[4].begin() + 4) == std::vector<int32_t>{0, 8, 16, 24});
  for (size_t i = 0; i < 24; ++i) {
    CHECK(batch.data[5][2 * i] == samples[i / 8]);
    CHECK(batch.data[5][2 * i + 1] == static_cast<int32_t>(i % 8));
    CHECK(batch.data[3][i] == static_cast<int32_t>(i % 8));
    CHECK(batch.weight(i) == 1.0f);
  }
  // A sample is the same whatever it is read with.
  Batch alone(8);
  data->read("train", {&samples[2], 1}, alone.pointers);
  for (size_t i = 0; i < 8; ++i) CHECK(alone.data[0][i] == batch.data[0][16 + i]);
}

TEST_CASE("Reading allocates nothing once warm") {
  const Config config(write_corpus("warm", {400, 300, 17}));
  auto data = make(config.changes);
  data->open({}, 16, 1);
  Batch batch(32);
  const auto read_all = [&] {
    for (int64_t n = 0; n + 1 < 40; n += 2) {
      const int64_t samples[] = {n, n + 1};
      data->read("train", samples, batch.pointers);
    }
  };
  read_all();
  const int64_t before = num_allocations;
  read_all();
  CHECK(num_allocations == before);
}

TEST_CASE("Views of the wrong type and samples that do not exist are refused") {
  const Config config(write_corpus("wrong", {40}));
  auto data = make(config.changes);
  data->open({}, 8, 1);
  Batch batch(8);
  const int64_t beyond = 1000, first = 0;
  CHECK_THROWS_AS(data->read("train", {&beyond, 1}, batch.pointers), Error);
  batch.views[2].dtype = kI32;
  CHECK_THROWS_AS(data->read("train", {&first, 1}, batch.pointers), Error);
}

}  // namespace gestalt::data_indexed
