#include "support/bpe/load.h"

#include <fmt/format.h>

#include "gestalt/error.hpp"
#include "support/bpe/test_data.h"
#include "support/bpe/tokenizer.h"
#include "support/json.h"

using namespace gestalt;
using namespace gestalt::support::bpe;

namespace {

// All 256 bytes in GPT-2's order of spelling, then "ab", "abc" and "zz", of which no merge makes the last.
std::string tokenizer_json(const std::string& more, const std::string& merges = R"(["a b", ["ab", "c"]])",
                           const std::string& pre = R"({"type":"ByteLevel","add_prefix_space":false})") {
  std::string vocab;
  int id = 0;
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    vocab += fmt::format("{}\"\\u{:04x}\":{}", id ? "," : "", printable ? b : next++, id);
    ++id;
  }
  return fmt::format(R"({{"added_tokens":[{{"id":259,"content":"<s>","special":true}},{{"id":260,"content":"<e>"}}],
    "pre_tokenizer":{},"model":{{"type":"BPE","vocab":{{{},"ab":256,"abc":257,"zz":258}},"merges":{}}}{}}})",
                     pre, vocab, merges, more);
}

Tokenizer open(const std::string& name, const std::string& json) {
  return Tokenizer(load_hf(write_file(name + "/tokenizer.json", json)), "");
}

std::vector<int32_t> encode(const Tokenizer& t, std::string_view text) {
  auto scratch = t.make_scratch();
  std::vector<int32_t> ids;
  t.encode(text, Specials::kAllow, &scratch, &ids);
  return ids;
}

std::string problem(const std::string& json) {
  try {
    open("bad", json);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

}  // namespace

TEST_CASE("a tokenizer.json gives merges in both spellings and its added tokens") {
  std::filesystem::create_directories(scratch("plain"));
  const Tokenizer t = open("plain", tokenizer_json(""));
  CHECK(encode(t, "abc<e>ab") == std::vector<int32_t>{257, 260, 256});
  CHECK(encode(t, "zz").size() == 2);
  CHECK(t.begin() == -1);
  std::string bytes;
  t.decode(std::vector<int32_t>{257, 32}, &bytes);
  CHECK(bytes == "abc ");
}

TEST_CASE("ignore_merges takes a whole piece that is a token") {
  std::filesystem::create_directories(scratch("ignore"));
  std::string json = tokenizer_json("");
  json.replace(json.find("\"type\":\"BPE\""), 12, "\"type\":\"BPE\",\"ignore_merges\":true");
  CHECK(encode(open("ignore", json), "zz") == std::vector<int32_t>{258});
}

TEST_CASE("a template's first token and the roles of tokenizer_config.json are taken over") {
  std::filesystem::create_directories(scratch("roles"));
  write_file("roles/tokenizer_config.json",
             R"({"bos_token":"<s>","eos_token":{"content":"<e>"},"unk_token":"nowhere","pad_token":null})");
  const Tokenizer t = open("roles", tokenizer_json(R"(,"post_processor":{"type":"Sequence","processors":[
      {"type":"ByteLevel"},{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}]}]})"));
  CHECK(t.begin() == 259);
  CHECK(t.special("bos") == 259);
  CHECK(t.special("eos") == 260);
  CHECK(t.special("unk") == -1);
}

TEST_CASE("what a byte-level BPE does not have is refused with the file") {
  std::filesystem::create_directories(scratch("bad"));
  CHECK_THAT(problem(tokenizer_json("", "[]", R"({"type":"Metaspace"})")),
             Catch::Contains("bad/tokenizer.json") && Catch::Contains("not byte-level"));
  CHECK_THAT(problem(tokenizer_json(R"(,"normalizer":{"type":"Lowercase"})")), Catch::Contains("Lowercase"));
  CHECK_THAT(problem(tokenizer_json("", R"(["a  b"])")), Catch::Contains("merge 0"));
  CHECK_THAT(problem(tokenizer_json("", R"(["a q"])")), Catch::Contains("merge 0") && Catch::Contains("lacks"));
  CHECK_THAT(problem(tokenizer_json(R"(,"post_processor":{"type":"BertProcessing"})")), Catch::Contains("BertProcessing"));
  CHECK_THAT(problem("{}"), Catch::Contains("model"));
}

TEST_CASE("files of the tokenizers library give the ids that it gives") {
  for (const char* name : {"gpt2", "llama3"}) {
    const std::string folder = std::string(GESTALT_SOURCE_DIR) + "/tests/golden/tokenizer/" + name;
    const Tokenizer t(load_hf(folder + "/tokenizer.json"), "");
    const support::Json expect = support::read_json_file(folder + "/expect.json");
    for (const support::Json& line : expect.at("lines").items()) {
      std::vector<int32_t> ids, wanted;
      if (t.begin() >= 0) ids.push_back(static_cast<int32_t>(t.begin()));
      for (int32_t id : encode(t, line.str("text"))) ids.push_back(id);
      for (int64_t id : line.i64_list("ids")) wanted.push_back(static_cast<int32_t>(id));
      INFO(name << ": " << line.str("text"));
      CHECK(ids == wanted);
    }
    CHECK(t.special("eos") == 1);
  }
}
