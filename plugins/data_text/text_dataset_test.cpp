#include "plugins/data_text/text_dataset.h"

#include <map>
#include <set>

#include "core/base/host.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::data_text {

namespace {

using support::contains;
using support::error_of;
using support::TestFolder;

// One id a byte; enough of tokenizer/1 for a data set.
const gestalt_tokenizer_1 kBytes = {sizeof(gestalt_tokenizer_1),
                                    [](void*, const gestalt_str* texts, uint64_t num, uint64_t,
                                       const gestalt_id_sink* sink) noexcept -> gestalt_status* {
                                      for (uint64_t i = 0; i < num; ++i) {
                                        for (char c : view_of(texts[i])) {
                                          const int32_t id = static_cast<unsigned char>(c);
                                          sink->put(sink->self, i, &id, 1);
                                        }
                                      }
                                      return nullptr;
                                    },
                                    [](void*, const int32_t* ids, const uint64_t* offsets, uint64_t num,
                                       const gestalt_byte_sink* sink) noexcept -> gestalt_status* {
                                      for (uint64_t i = 0; i < num; ++i) {
                                        for (uint64_t j = offsets[i]; j < offsets[i + 1]; ++j) {
                                          const char c = static_cast<char>(ids[j]);
                                          sink->put(sink->self, i, {&c, 1});
                                        }
                                      }
                                      return nullptr;
                                    },
                                    [](void*) noexcept { return int64_t{256}; },
                                    [](void*, gestalt_str) noexcept { return int64_t{-1}; },
                                    [](void*, uint8_t out[32]) noexcept { std::fill(out, out + 32, uint8_t{1}); }};

const gestalt_host* test_host() {
  static const gestalt_host* host = core::make_host("data_text test");
  return host;
}

struct Batch {
  explicit Batch(int64_t num_samples, int64_t seq_len) {
    const int64_t n = num_samples * seq_len;
    const int64_t sizes[6] = {n, n, n, n, num_samples + 1, n};
    for (size_t i = 0; i < 6; ++i) {
      data[i].resize(static_cast<size_t>(i == 5 ? 2 * n : sizes[i]), -7);
      shape[i][0] = sizes[i];
      shape[i][1] = 2;
      strides[i][0] = i == 5 ? 2 : 1;
      strides[i][1] = 1;
      views[i] = {data[i].data(), GESTALT_DEVICE_CPU, 0, i == 5 ? 2 : 1, i == 2 ? kF32 : kI32, shape[i], strides[i], 0};
      out[i] = &views[i];
    }
  }
  float weight(size_t i) const { return reinterpret_cast<const float*>(data[2].data())[i]; }

  std::vector<int32_t> data[6];
  int64_t shape[6][2], strides[6][2];
  gestalt_view views[6];
  gestalt_view* out[6];
};

std::unique_ptr<TextDataset> make(const std::string& path, int64_t block, int64_t context = 0) {
  const Attr config[] = {{"context", context},     {"holdout", block > 0 ? "lines" : "none"},
                         {"holdout_block", block}, {"holdout_index", 1},
                         {"holdout_period", 4},    {"path", path}};
  return std::make_unique<TextDataset>(Host(test_host()), Attrs(config, 6));
}

void open(TextDataset& data, int64_t seq_len, int64_t seed = 1) {
  data.open(TokenizerRef(test_host(), &kBytes, nullptr), seq_len, seed);
}

gestalt_dataset_info info_of(TextDataset& data, std::string_view split) {
  gestalt_dataset_info info{};
  info.struct_size = sizeof info;
  data.info(split, info);
  return info;
}

std::string numbered_lines(int num) {
  std::string text;
  for (int i = 0; i < num; ++i) text += "verse " + std::to_string(i) + " says something\n";
  return text;
}

}  // namespace

TEST_CASE("every validation token but the first is a label with weight one exactly once") {
  const TestFolder folder;
  const std::string text = numbered_lines(40);
  const std::string path = folder.write("t.txt", text);
  const std::string valid = split_lines(text, {3, 4, 1}).valid;
  for (int64_t seq_len : {1, 7, 16, 64, 600}) {
    for (int64_t context : {int64_t{0}, seq_len / 2, seq_len - 1}) {
      INFO("seq_len " << seq_len << " context " << context);
      const auto data = make(path, 3, context);
      open(*data, seq_len);
      const gestalt_dataset_info info = info_of(*data, "valid");
      if (context == 0) CHECK(info.num_samples == (static_cast<int64_t>(valid.size()) - 1 + seq_len - 1) / seq_len);
      CHECK(info.bytes_of_text == static_cast<int64_t>(valid.size()) - 1);
      std::string labels;
      for (int64_t n = 0; n < info.num_samples; ++n) {
        Batch batch(1, seq_len);
        const BatchSizes sizes = data->read("valid", {&n, 1}, batch.out);
        REQUIRE(sizes.num_tokens == seq_len);
        for (size_t i = 0; i < static_cast<size_t>(seq_len); ++i) {
          if (batch.weight(i) == 1) {
            // The token is the one before the label in the stream.
            if (batch.data[0][i] != static_cast<unsigned char>(valid[labels.size()]))
              FAIL("token of label " << labels.size());
            labels.push_back(static_cast<char>(batch.data[1][i]));
          } else if (batch.weight(i) != 0) {
            FAIL("weight " << batch.weight(i));
          }
        }
      }
      CHECK(labels == valid.substr(1));
    }
  }
}

TEST_CASE("a batch has positions, segments and keys of its samples one after the other") {
  const TestFolder folder;
  const auto data = make(folder.write("t.txt", numbered_lines(40)), 3);
  open(*data, 8);
  Batch batch(3, 8);
  const int64_t samples[] = {5, (int64_t{1} << 31) + 9, 0};
  const BatchSizes sizes = data->read("train", samples, batch.out);
  CHECK(sizes.num_tokens == 24);
  CHECK(sizes.num_sequences == 3);
  CHECK(batch.data[4] == std::vector<int32_t>{0, 8, 16, 24});
  CHECK(batch.data[3][15] == 7);
  CHECK(batch.data[5][2 * 8] == 9);
  CHECK(batch.data[5][2 * 15 + 1] == 7);
  for (size_t i = 0; i < 24; ++i) CHECK(batch.weight(i) == 1);
  for (size_t i = 0; i < 7; ++i) CHECK(batch.data[1][i] == batch.data[0][i + 1]);
}

TEST_CASE("an epoch takes each window once, and the next one cuts and orders them anew") {
  for (int64_t num_tokens : {9, 16, 17, 24, 25, 1000, 1001}) {
    const TrainWindows windows(num_tokens, 8, 3);
    std::vector<int64_t> offsets;
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      std::set<int64_t> starts;
      for (int64_t i = 0; i < windows.samples_per_epoch(); ++i) {
        const Window window = windows(epoch * windows.samples_per_epoch() + i);
        if (window.start < 0 || window.start + 8 + 1 > num_tokens) FAIL("window outside the stream");
        starts.insert(window.start);
      }
      REQUIRE(static_cast<int64_t>(starts.size()) == windows.samples_per_epoch());
      CHECK(*starts.rbegin() - *starts.begin() == 8 * (windows.samples_per_epoch() - 1));
      offsets.push_back(*starts.begin());
    }
    if (num_tokens >= 16) CHECK(std::set<int64_t>(offsets.begin(), offsets.end()).size() > 3);
  }
}

TEST_CASE("a sample depends on the seed and its number, not on the batch it is read in") {
  const TestFolder folder;
  const std::string path = folder.write("t.txt", numbered_lines(200));
  const auto a = make(path, 3), b = make(path, 3), c = make(path, 3);
  open(*a, 8);
  open(*b, 8);
  open(*c, 8, 2);
  const int64_t two[] = {3, 4}, one[] = {4};
  Batch pair(2, 8), single(1, 8), other(2, 8);
  a->read("train", two, pair.out);
  b->read("train", one, single.out);
  c->read("train", two, other.out);
  CHECK(std::equal(single.data[0].begin(), single.data[0].end(), pair.data[0].begin() + 8));
  CHECK(other.data[0] != pair.data[0]);
}

TEST_CASE("the digest changes with the text and with every setting that decides the order") {
  const TestFolder folder;
  const std::string path = folder.write("t.txt", numbered_lines(200)),
                    longer = folder.write("u.txt", numbered_lines(201));
  std::set<std::string> digests;
  const auto add = [&](const std::string& file, int64_t block, int64_t context, int64_t seq_len, int64_t seed) {
    const auto data = make(file, block, context);
    open(*data, seq_len, seed);
    const gestalt_dataset_info info = info_of(*data, "train");
    digests.insert(std::string(reinterpret_cast<const char*>(info.digest), 32));
  };
  add(path, 3, 0, 8, 1);
  add(path, 3, 0, 8, 1);
  CHECK(digests.size() == 1);
  add(longer, 3, 0, 8, 1);
  add(path, 4, 0, 8, 1);
  add(path, 0, 0, 8, 1);
  add(path, 3, 2, 8, 1);
  add(path, 3, 0, 9, 1);
  add(path, 3, 0, 8, 2);
  CHECK(digests.size() == 7);
}

TEST_CASE("texts too short, splits that are absent and samples out of range are refused with the numbers") {
  const TestFolder folder;
  const std::string path = folder.write("t.txt", "one\ntwo\nthree\nfour\nfive\n");
  const auto data = make(path, 1);
  CHECK(contains(error_of([&] { open(*data, 1000); }), "5: [data.path] " + path + ": too short, got 20 tokens"));
  CHECK(
      contains(error_of([&] { open(*make(path, 31), 4); }), "no line is held out, got 5 lines, expected more than 31"));
  CHECK(contains(error_of([&] { open(*make(path, 1, 4), 4); }),
                 "8: [data.context] got 4, expected less than seq_len, 4"));
  CHECK(contains(error_of([&] { open(*make(folder.file("none"), 1), 4); }), "4: ["));
  CHECK(contains(error_of([&] { make(path, 1)->open({}, 4, 1); }), "8: [tokenizer] is missing"));
  open(*data, 4);
  CHECK(contains(error_of([&] { info_of(*data, "test"); }),
                 "4: [data] no such split, got \"test\", expected train or valid"));
  const int64_t beyond = info_of(*data, "valid").num_samples;
  Batch batch(1, 4), small(1, 3);
  CHECK(contains(error_of([&] { data->read("valid", {&beyond, 1}, batch.out); }), "sample out of range, got 1"));
  const int64_t first = 0;
  CHECK(contains(error_of([&] { data->read("train", {&first, 1}, small.out); }), "[tokens] got room for i32[3]"));
  const auto all = make(path, 0);
  open(*all, 4);
  CHECK(contains(error_of([&] { info_of(*all, "valid"); }), "4: [data] no such split"));
}

}  // namespace gestalt::data_text
