// Files of text, damaged at random: corpora (.idx and .bin), rank files, GPT-2's merges and vocabularies, and JSONL.
// Whatever the bytes, reading them gives a value, or an Error that names the file and the place in it; never another
// exception, a crash or undefined behaviour (run it under the sanitizers). Each round depends on (seed, kind, round)
// only, so that one can be repeated: --seed S --only KIND --first N --count 1.
//
//   mutate_text [--seconds 20 | --count N] [--seed S] [--first N] [--only idx|ranks|merges|jsonl]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>

#include "gestalt/error.hpp"
#include "plugins/task_data/corpus_verbs.h"
#include "plugins/task_data/documents.h"
#include "support/bpe/base64.h"
#include "support/bpe/tokenizer.h"
#include "support/file.h"
#include "support/indexed/corpus.h"
#include "support/indexed/index_writer.h"
#include "tests/temporary_folder.h"

namespace {

using namespace gestalt;
using Random = std::mt19937_64;

constexpr std::string_view kPieces[] = {"\n",
                                        "\r\n",
                                        " ",
                                        "  ",
                                        "\t",
                                        "=",
                                        "==",
                                        "A",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "\\",
                                        "\\u",
                                        "\\ud800",
                                        "\\n",
                                        "-1",
                                        "0",
                                        "255",
                                        "256",
                                        "1e999",
                                        "4294967295",
                                        "9223372036854775808",
                                        "null",
                                        "true",
                                        "#version",
                                        "\xC4\xA0",
                                        "\xFF",
                                        "\xEF\xBB\xBF",
                                        "\xC4",
                                        "\"text\"",
                                        "{\"text\": \"\"}\n",
                                        "<|endoftext|>"};

size_t below(Random& random, size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); }

std::string damaged(std::string text, Random& random) {
  for (size_t i = 0, n = 1 + below(random, 1 + below(random, 4)); i < n; ++i) {
    const size_t at = below(random, text.size() + 1), length = 1 + below(random, below(random, 8) == 0 ? 200 : 12);
    const std::string_view piece = kPieces[below(random, std::size(kPieces))];
    switch (below(random, 8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(below(random, text.size() + 1), text.substr(at, length));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, piece);
        break;
      case 6: {  // a number as binary files hold it, often one that overflows something
        const uint64_t values[] = {0, 1, 0x7FFFFFFF, 0x80000000, UINT64_MAX, uint64_t{1} << 63, random()};
        const uint64_t value = values[below(random, std::size(values))];
        for (size_t b = 0; b < 8 && at + b < text.size(); ++b) text[at + b] = static_cast<char>(value >> (8 * b));
        break;
      }
      default:
        text.replace(at, std::min(length, text.size() - at), piece);
    }
  }
  return text;
}

// Whether the function took the file. What it refuses with has to say which file and where.
template <class F>
bool accepted(F&& function, std::initializer_list<std::string_view> files) {
  try {
    function();
    return true;
  } catch (const Error& e) {
    if (e.code != GESTALT_DATA_ERROR && e.code != GESTALT_CONFIG_ERROR)
      throw std::runtime_error(fmt::format("an Error of code {} came out: {}", e.code, e.message()));
    bool file = false, place = false;
    for (const std::string_view f : files) file = file || e.message().find(f) != std::string::npos;
    for (const char* word : {" byte", "token \"", "sequence", "jsonl:", "json] ", "[tokenizer"})
      place = place || e.message().find(word) != std::string::npos;
    if (!file || !place) throw std::runtime_error("neither file nor place in the message: " + e.message());
    return false;
  }
}

class Rounds {
 public:
  explicit Rounds(std::string_view kind) : kind_(kind), folder_(std::make_unique<test::TemporaryFolder>()) {
    for (int b = 0; b < 256; ++b) {
      const char c = static_cast<char>(b);
      ranks_ += support::bpe::encode_base64({&c, 1}) + " " + std::to_string(b) + "\n";
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const int code = printable ? b : next_spelling_++;
      std::string spelled;
      if (code == '"' || code == '\\') spelled += '\\';
      if (code >= 0x80) spelled += static_cast<char>(0xC0 | code >> 6);
      spelled += static_cast<char>(code < 0x80 ? code : 0x80 | (code & 63));
      vocab_ += (b ? ", \"" : "{\"") + spelled + "\": " + std::to_string(b);
    }
    vocab_ += ", \"ab\": 256, \"abc\": 257, \"\xC4\xA0t\": 258, \"<|endoftext|>\": 259}";
    ranks_ += "YWI= 256\nYWJj 257\nIHQ= 258\n";
    for (const auto type : {support::indexed::TokenType::kU16, support::indexed::TokenType::kI32}) {
      support::indexed::IndexWriter writer(path("good"), type, 0);
      for (int d = 0; d < 12; ++d) {
        for (int s = 0; s < 1 + d % 3; ++s) writer.add(std::vector<int32_t>(static_cast<size_t>(3 + d), d));
        writer.end_document();
      }
      writer.finish();
      index_.push_back(support::ReadFile(path("good.idx")).read_all());
      bin_.push_back(support::ReadFile(path("good.bin")).read_all());
    }
  }

  void round(uint64_t seed, uint64_t number) {
    Random random(seed * 0x9E3779B97F4A7C15u + number);
    bool taken = false;
    if (kind_ == "idx") taken = idx(random);
    if (kind_ == "ranks") taken = ranks(random);
    if (kind_ == "merges") taken = merges(random);
    if (kind_ == "jsonl") taken = jsonl(random);
    num_accepted += taken;
  }

  uint64_t num_accepted = 0;

 private:
  std::string path(const std::string& name) const { return (folder_->path() / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    return folder_->write(name, bytes).string();
  }

  bool idx(Random& random) {
    const size_t which = below(random, index_.size());
    const bool tokens_too = below(random, 4) == 0;
    write("c.idx", damaged(index_[which], random));
    write("c.bin", tokens_too ? damaged(bin_[which], random) : bin_[which]);
    const std::string prefix = path("c");
    accepted([&] { task_data::inspect_corpus(prefix); }, {prefix});
    accepted([&] { task_data::verify_corpus(prefix, 0); }, {prefix});
    return accepted(
        [&] {
          support::indexed::CorpusConfig config;
          config.paths = {prefix};
          config.split = "8,1,1";
          config.seq_len = 4;
          support::indexed::Corpus corpus(config);
          int32_t tokens[4], labels[4], positions[4];
          float weights[4];
          std::vector<int32_t> starts;
          for (const std::string_view name : support::indexed::kSplitNames) {
            const auto* split = corpus.split(name);
            for (int64_t n = 0; split && n < split->num_samples; ++n)
              corpus.read(*split, n, {tokens, labels, weights, positions}, &starts);
          }
        },
        {prefix});
  }

  // What was taken must encode and decode anything.
  static void use(support::bpe::Loaded loaded, Random& random) {
    const support::bpe::Tokenizer tokenizer(std::move(loaded), "gpt2");
    auto scratch = tokenizer.make_scratch();
    std::string text = "abc the abab", back;
    for (size_t i = 0; i < 20; ++i) text += static_cast<char>(random());
    std::vector<int32_t> ids;
    tokenizer.encode(text, support::bpe::Specials::kAllow, &scratch, &ids);
    tokenizer.decode(ids, &back);
    if (back != text) throw std::runtime_error("decoding does not give the text back");
  }

  bool ranks(Random& random) {
    constexpr std::string_view kSidecar =
        R"({"format": "gestalt.bpe/1", "pattern": "gpt2", "special_tokens": {"<|endoftext|>": 259}, "eos": "<|endoftext|>"})";
    const bool sidecar = below(random, 4) == 0;
    const std::string file = write("r.tiktoken", sidecar ? ranks_ : damaged(ranks_, random));
    if (sidecar)
      write("r.tiktoken.json", damaged(std::string(kSidecar), random));
    else
      std::filesystem::remove(file + ".json");
    support::bpe::Loaded loaded;
    if (!accepted([&] { loaded = support::bpe::load_tiktoken(file); }, {file})) return false;
    // Making a tokenizer takes long next to reading a file.
    return below(random, 8) != 0 || accepted([&] { use(std::move(loaded), random); }, {"[tokenizer"});
  }

  bool merges(Random& random) {
    constexpr std::string_view kMerges = "#version: 0.2\na b\nab c\n\xC4\xA0 t\n";
    const bool vocabulary = below(random, 2) == 0;
    const std::string vocab = write("v.json", vocabulary ? damaged(vocab_, random) : vocab_);
    const std::string file = write("m.txt", vocabulary ? std::string(kMerges) : damaged(std::string(kMerges), random));
    support::bpe::Loaded loaded;
    if (!accepted([&] { loaded = support::bpe::load_gpt2(vocab, file); }, {vocab, file})) return false;
    return below(random, 8) != 0 || accepted([&] { use(std::move(loaded), random); }, {"[tokenizer"});
  }

  bool jsonl(Random& random) {
    std::string text;
    for (int i = 0; i < 4; ++i)
      text += "{\"id\": 7, \"text\": \"caf\\u00e9 \\ud83d\\ude00 \\n\", \"more\": [1, {\"a\": null}, -2.5e3, true]}\n";
    task_data::TokenizeOptions options;
    options.inputs = {write("l.jsonl", damaged(text, random))};
    task_data::DocumentReader reader(options);
    task_data::RawDocument document;
    bool all = true;
    while (reader.next(&document)) {
      const std::string place = fmt::format("{}:{}", *document.path, document.line);
      all &= accepted([&] { task_data::text_of(std::move(document), "text"); }, {place});
    }
    return all;
  }

  std::string kind_;
  std::unique_ptr<test::TemporaryFolder> folder_;
  std::string ranks_, vocab_;
  int next_spelling_ = 256;
  std::vector<std::string> index_, bin_;
};

std::string_view text_after(int argc, char** argv, std::string_view flag, std::string_view fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (flag == argv[i]) return argv[i + 1];
  return fallback;
}

uint64_t number_after(int argc, char** argv, std::string_view flag, uint64_t fallback) {
  const std::string_view text = text_after(argc, argv, flag, "");
  return text.empty() ? fallback : std::strtoull(text.data(), nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = number_after(argc, argv, "--seed", 1), first = number_after(argc, argv, "--first", 0);
  const uint64_t seconds = number_after(argc, argv, "--seconds", 0);
  const uint64_t count = number_after(argc, argv, "--count", seconds ? UINT64_MAX - first : 500);
  const std::string_view only = text_after(argc, argv, "--only", "");
  for (const std::string_view kind : {"idx", "ranks", "merges", "jsonl"}) {
    if (!only.empty() && only != kind) continue;
    fmt::print("{}: seed {}, rounds from {}\n", kind, seed, first);
    std::fflush(stdout);
    uint64_t number = first;
    try {
      Rounds rounds(kind);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
      for (; number < first + count && (!seconds || std::chrono::steady_clock::now() < end); ++number) {
        if (number % 1000 == 0) {  // so that a crash can be found
          fmt::print("{} round {}\n", kind, number);
          std::fflush(stdout);
        }
        rounds.round(seed, number);
      }
      fmt::print("{}: {} rounds, {} were taken\n", kind, number - first, rounds.num_accepted);
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}: seed {} round {}: {}\n", kind, seed, number, e.what());
      return 1;
    }
  }
  return 0;
}
