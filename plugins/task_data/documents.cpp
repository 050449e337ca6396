#include "plugins/task_data/documents.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "gestalt/error.hpp"
#include "support/json.h"

namespace gestalt::task_data {
namespace {

bool is_jsonl(const std::string& path, Format format) {
  if (format != Format::kByName) return format == Format::kJsonl;
  std::string_view name = path;
  for (const std::string_view packed : {".gz", ".zst", ".xz"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  return name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".ndjson");
}

bool blank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

}  // namespace

DocumentReader::DocumentReader(const TokenizeOptions& options) : options_(options) {
  if (options.inputs.empty()) throw InvalidArgument("[--input] is needed");
  for (const std::string& path : options.inputs) {
    struct stat info {};
    if (path == "-" || stat(path.c_str(), &info) != 0) {
      all_bytes_ = 0;
      return;
    }
    all_bytes_ += static_cast<uint64_t>(info.st_size);
  }
}

bool DocumentReader::open_next() {
  if (input_) done_bytes_ += input_->packed_bytes();
  input_.reset();
  if (num_opened_ == options_.inputs.size()) return false;
  const std::string& path = options_.inputs[num_opened_++];
  input_ = std::make_unique<support::text_input::InputStream>(path);
  lines_ = std::make_unique<support::text_input::LineReader>(input_.get());
  jsonl_ = is_jsonl(path, options_.format);
  at_start_ = true;
  whole_taken_ = false;
  return true;
}

bool DocumentReader::next(RawDocument* document) {
  for (;;) {
    if (!input_ && !open_next()) return false;
    document->path = &options_.inputs[num_opened_ - 1];
    document->jsonl = jsonl_;
    document->text.clear();
    if (next_in_file(document)) break;
    if (!open_next()) return false;
  }
  // A byte order mark is taken once, at the start of a file.
  if (at_start_ && document->text.starts_with("\xEF\xBB\xBF")) document->text.erase(0, 3);
  at_start_ = false;
  return true;
}

bool DocumentReader::next_in_file(RawDocument* document) {
  if (!jsonl_ && options_.unit == Unit::kFile) {
    if (whole_taken_) return false;
    whole_taken_ = true;
    document->line = 1;
    char chunk[1 << 16];
    while (const uint64_t got = input_->read(chunk, sizeof chunk)) document->text.append(chunk, got);
    return true;
  }
  std::string line;
  while (lines_->next(&line)) {
    if (jsonl_ || options_.unit == Unit::kLine) {
      if (blank(line)) continue;
      document->line = lines_->number();
      document->text = std::move(line);
      return true;
    }
    if (blank(line)) {
      if (!document->text.empty()) return true;
      continue;
    }
    if (document->text.empty()) document->line = lines_->number();
    document->text += line;
    document->text += '\n';
  }
  return !document->text.empty();
}

std::string text_of(RawDocument&& document, const std::string& key) {
  if (!document.jsonl) return std::move(document.text);
  support::JsonLimits limits;
  limits.max_bytes = document.text.size();
  support::Json root = support::parse_json(document.text, fmt::format("{}:{}", *document.path, document.line), limits);
  if (!root.is_object())
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}:{}] holds {}, expected an object", *document.path, document.line, root.kind()));
  const support::Json* value = root.find(key);
  if (!value || !value->is_string())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}:{}] \"{}\" is {}, expected a string", *document.path,
                                                document.line, key, value ? value->kind() : "missing"));
  return value->str();
}

}  // namespace gestalt::task_data
