// Generation on the state that modules declare, against whole sequences.
#include <algorithm>
#include <numeric>

#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

using namespace core;
using Ids = std::vector<int32_t>;

constexpr int64_t kBlock = 4, kVocabulary = 256;

gestalt_generation sizes(int64_t blocks, int64_t tokens, int64_t sequences) {
  return {sizeof(gestalt_generation), kBlock, blocks, tokens, sequences};
}

// New tokens of some sequences, for one pass.
struct Part {
  Ids tokens;
  int32_t length;
  Ids blocks;
};

struct Result {
  Ids ids;
  std::vector<float> logits;  // [sequences, vocabulary]
};

Result pass_over(Generation& generation, const std::vector<Part>& parts, float temperature = 0, uint64_t position = 0) {
  Ids tokens, starts = {0}, lengths, blocks, slots;
  size_t width = 0;
  for (const Part& p : parts) width = std::max(width, p.blocks.size());
  std::vector<gestalt_sampling> sampling;
  for (const Part& p : parts) {
    tokens.insert(tokens.end(), p.tokens.begin(), p.tokens.end());
    starts.push_back(static_cast<int32_t>(tokens.size()));
    lengths.push_back(p.length);
    slots.push_back(static_cast<int32_t>(slots.size()));
    Ids row = p.blocks;
    row.resize(width, -1);
    blocks.insert(blocks.end(), row.begin(), row.end());
    sampling.push_back({temperature, 1, 0, 0, 7, position});
  }
  Result r{Ids(parts.size()), std::vector<float>(parts.size() * kVocabulary)};
  gestalt_generation_pass pass{};
  pass.struct_size = sizeof(pass);
  pass.tokens = tokens.data();
  pass.num_tokens = tokens.size();
  pass.num_sequences = parts.size();
  pass.starts = starts.data();
  pass.lengths = lengths.data();
  pass.blocks = blocks.data();
  pass.blocks_per_sequence = width;
  pass.slots = slots.data();
  pass.sampling = sampling.data();
  pass.ids = r.ids.data();
  pass.logits = r.logits.data();
  generation.pass(pass);
  return r;
}

// Logits of the last token of a whole sequence.
std::vector<float> whole(TrainingRun& run, const Ids& ids) {
  std::vector<float> all(ids.size() * kVocabulary);
  run.session().predictor().logits(ids.data(), static_cast<int64_t>(ids.size()), all.data());
  return {all.end() - kVocabulary, all.end()};
}

float distance(const std::vector<float>& a, const float* b) {
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

Ids text_ids(int count, int seed) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back('a' + (i * 7 + seed * 3) % 26);
  return ids;
}

Ids range(int32_t from, int32_t to) {
  Ids ids(static_cast<size_t>(to - from));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

// What slots change in the model: grouped heads, windows, caps.
void check_equal(const std::vector<std::string>& sets) {
  TrainingRun run(sets);
  run.steps(5);
  Generation& g = run.session().open_generation(sizes(8, 16, 1));
  CHECK(g.vocabulary() == kVocabulary);
  Ids ids = text_ids(11, 1);
  // A prompt in two pieces, then token by token; blocks in no order.
  const Ids blocks = {6, 2, 7, 0, 5, 1, 3, 4};
  pass_over(g, {{Ids(ids.begin(), ids.begin() + 6), 6, blocks}});
  Result r = pass_over(g, {{Ids(ids.begin() + 6, ids.end()), 11, blocks}});
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> expected = whole(run, ids);
    CHECK(distance(expected, r.logits.data()) < 1e-4f);
    const auto best = static_cast<int32_t>(std::max_element(expected.begin(), expected.end()) - expected.begin());
    CHECK(r.ids[0] == best);
    ids.push_back(best);
    r = pass_over(g, {{{best}, static_cast<int32_t>(ids.size()), blocks}});
  }
}

}  // namespace

TEST_CASE("a sequence on state has the logits and greedy tokens of the whole sequence") {
  if (!plugins_built()) return;
  check_equal({});
  check_equal({"model.heads=4", "model.kv_heads=2", "model.positions=learned", "model.norm=layer"});
  check_equal({"model.attention_windows=[5, 0]", "model.attention_softcap=3.0", "model.tied=false"});
  check_equal({"run.device=sim", "device.max_delay_us=3"});
}

TEST_CASE("sequences of one pass do not see each other, whatever their blocks") {
  if (!plugins_built()) return;
  TrainingRun run;
  run.steps(3);
  const Ids a = text_ids(9, 1), b = text_ids(14, 2), c = text_ids(3, 3);
  Generation& g = run.session().open_generation(sizes(12, 32, 3));
  Result r = pass_over(g, {{a, 9, {11, 0, 3}}, {b, 14, {1, 10, 2, 9}}, {c, 3, {5}}});
  size_t at = 0;
  for (const Ids& ids : {a, b, c}) CHECK(distance(whole(run, ids), r.logits.data() + kVocabulary * at++) < 1e-4f);
  // Prompts and single tokens together.
  Ids longer = a;
  longer.push_back(r.ids[0]);
  r = pass_over(g, {{{r.ids[0]}, 10, {11, 0, 3}}, {text_ids(6, 5), 6, {7, 8}}});
  CHECK(distance(whole(run, longer), r.logits.data()) < 1e-4f);
  CHECK(distance(whole(run, text_ids(6, 5)), r.logits.data() + kVocabulary) < 1e-4f);
}

TEST_CASE("sequences that begin alike share blocks, and part ways after one is copied") {
  if (!plugins_built()) return;
  TrainingRun run;
  run.steps(3);
  Generation& g = run.session().open_generation(sizes(8, 16, 2));
  const Ids start = text_ids(6, 1);  // one whole block and half of another
  pass_over(g, {{start, 6, {0, 1}}});
  g.copy_block(1, 4);
  const Result r = pass_over(g, {{{'x'}, 7, {0, 1}}, {{'y'}, 7, {0, 4}}});
  Ids x = start, y = start;
  x.push_back('x');
  y.push_back('y');
  CHECK(distance(whole(run, x), r.logits.data()) < 1e-4f);
  CHECK(distance(whole(run, y), r.logits.data() + kVocabulary) < 1e-4f);
}

TEST_CASE("drawn tokens depend on seed and position alone") {
  if (!plugins_built()) return;
  TrainingRun run;
  Generation& g = run.session().open_generation(sizes(4, 16, 2));
  const Ids ids = text_ids(5, 1);
  const Result both = pass_over(g, {{ids, 5, {0, 1}}, {ids, 5, {2, 3}}}, 1, 4);
  CHECK(both.ids[0] == both.ids[1]);
  CHECK(pass_over(g, {{ids, 5, {3, 0}}}, 1, 4).ids[0] == both.ids[0]);
}

TEST_CASE("a pass that does not fit is refused with what it has") {
  if (!plugins_built()) return;
  TrainingRun run;
  Generation& g = run.session().open_generation(sizes(4, 8, 2));
  auto message = [&](const std::vector<Part>& parts) {
    return thrown_by([&] { pass_over(g, parts); }).message();
  };
  using Catch::Contains;
  CHECK_THAT(message({{text_ids(9, 1), 9, {0, 1, 2}}}), Contains("9 tokens in 1 sequences, expected 1 to 8"));
  CHECK_THAT(message({{{300}, 1, {0}}}), Contains("token 0 is 300"));
  CHECK_THAT(message({{{'a', 'b'}, 1, {0}}}), Contains("2 new tokens of 1"));
  CHECK_THAT(message({{{'a'}, 40, range(0, 10)}}), Contains("expected 1 to 32"));
  CHECK_THAT(message({{{'a'}, 5, {0, 9}}}), Contains("block_table: got 9"));
  CHECK_THAT(message({{{'a'}, 5, {0}}}), Contains("block_table: got -1"));
}

TEST_CASE("a model with a part that keeps no state says which") {
  if (!plugins_built()) return;
  TrainingRun run({"model.slots.core_attention.type=gestalt.softmax_attention", "model.slots.core_attention.kv_heads=0"});
  const core::Error e = thrown_by([&] { run.session().open_generation(sizes(4, 8, 1)); });
  CHECK(e.code() == GESTALT_UNSUPPORTED);
  CHECK(e.message().find("model.layers.0.attention.core_attention") != std::string::npos);
}

}  // namespace gestalt::test
