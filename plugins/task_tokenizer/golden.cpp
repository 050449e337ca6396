#include "plugins/task_tokenizer/golden.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "gestalt/error.hpp"
#include "support/bpe/tokenizer.h"
#include "support/json.h"
#include "support/sha256.h"
#include "support/text_input/input.h"

namespace gestalt::task_tokenizer {
namespace {

namespace fs = std::filesystem;
using support::bpe::Tokenizer;

// Finds files by name under a folder, and unpacks those that loaders are to read.
class Files {
 public:
  explicit Files(const std::string& folder) : folder_(folder) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (it->is_regular_file()) paths_.emplace(it->path().filename().string(), it->path().string());
    if (error) throw Error(GESTALT_NOT_FOUND, fmt::format("[--files] {} cannot be read: {}", folder, error.message()));
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() {
    std::error_code ignored;
    if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
  }

  // Empty when there is none.
  std::string find(const std::string& name) const {
    for (const char* packed : {"", ".xz", ".gz", ".zst"}) {
      const auto found = paths_.find(name + packed);
      if (found != paths_.end()) return found->second;
    }
    return {};
  }
  // A plain file with the content of `name`; empty when there is none.
  std::string plain(const std::string& name) {
    const std::string path = find(name);
    if (path.empty() || fs::path(path).filename() == name) return path;
    if (scratch_.empty()) {
      scratch_ = (fs::temp_directory_path() / "gestalt_XXXXXX").string();
      if (!mkdtemp(scratch_.data()))
        throw Error(GESTALT_IO_ERROR, fmt::format("[tokenizer] {} cannot be made", scratch_));
    }
    const std::string unpacked = scratch_ + "/" + name;
    std::ofstream(unpacked, std::ios::binary) << support::text_input::read_input(path);
    return unpacked;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_, scratch_;
  std::map<std::string, std::string> paths_;
};

// Every form in which the vocabulary `name` lies there; none: it is not ours.
std::vector<Tokenizer> open_all(Files* files, const std::string& name) {
  std::vector<Tokenizer> out;
  const std::string ranks = files->plain((name == "gpt2" ? "r50k_base" : name) + ".tiktoken");
  if (!ranks.empty()) {
    support::bpe::Loaded loaded = support::bpe::load_tiktoken(ranks);
    const std::string pattern = loaded.pattern.empty() ? name : loaded.pattern;
    out.emplace_back(std::move(loaded), pattern);
  }
  const std::string vocab = files->plain(name + "_encoder.json"), merges = files->plain(name + "_vocab.bpe");
  if (!vocab.empty() && !merges.empty()) out.emplace_back(support::bpe::load_gpt2(vocab, merges), "");
  return out;
}

// What is wrong; empty when the line is reproduced.
std::string check_line(const Tokenizer& tokenizer, const support::Json& line, const Files& files) {
  auto scratch = tokenizer.make_scratch();
  std::vector<int32_t> ids;
  std::string text;
  const bool is_file = line.has("file");
  if (is_file) {
    const std::string path = files.find(line.str("file"));
    if (path.empty())
      throw Error(GESTALT_NOT_FOUND, fmt::format("[--files] {} has no file {}", files.folder(), line.str("file")));
    text = support::text_input::read_input(path);
  } else {
    text = line.str("text");
  }
  tokenizer.encode(text, support::bpe::Specials::kAsText, &scratch, &ids);
  std::string back;
  tokenizer.decode(ids, &back);
  if (back != text) return "decoding does not give the text back";
  if (is_file) {
    if (static_cast<int64_t>(ids.size()) != line.i64("count"))
      return fmt::format("{} ids, expected {}", ids.size(), line.i64("count"));
    const std::string digest =
        support::hex(support::sha256({reinterpret_cast<const char*>(ids.data()), ids.size() * 4}));
    if (digest != line.str("sha256_of_uint32le_ids"))
      return fmt::format("the ids' SHA-256 is {}, expected {}", digest, line.str("sha256_of_uint32le_ids"));
    return {};
  }
  if (std::vector<int64_t>(ids.begin(), ids.end()) == line.i64_list("ids")) return {};
  return fmt::format("ids {}, expected {}", fmt::join(ids, " "), fmt::join(line.i64_list("ids"), " "));
}

}  // namespace

GoldenCounts check_golden(const std::string& golden, const std::string& folder) {
  GoldenCounts counts;
  Files files(folder);
  std::map<std::string, std::vector<Tokenizer>> opened;
  support::text_input::InputStream input(golden);
  support::text_input::LineReader lines(&input);
  for (std::string text; lines.next(&text);) {
    const std::string origin = fmt::format("{}:{}", golden, lines.number());
    const support::Json line = support::parse_json(text, origin);
    const std::string& name = line.str("tokenizer");
    if (!opened.contains(name)) opened.emplace(name, open_all(&files, name));
    const std::vector<Tokenizer>& tokenizers = opened.at(name);
    if (tokenizers.empty()) {
      ++counts.num_not_ours;
      if (std::find(counts.not_ours.begin(), counts.not_ours.end(), name) == counts.not_ours.end())
        counts.not_ours.push_back(name);
    }
    for (const Tokenizer& tokenizer : tokenizers) {
      const std::string problem = check_line(tokenizer, line, files);
      if (problem.empty())
        ++counts.equal;
      else
        counts.different.push_back(fmt::format("{}: {}: {}", origin, name, problem));
    }
  }
  return counts;
}

}  // namespace gestalt::task_tokenizer
