#include "plugins/task_data/rearrange.h"

#include <fmt/format.h>

#include <algorithm>

#include "gestalt/error.hpp"
#include "support/indexed/corpus.h"
#include "support/indexed/index_writer.h"

namespace gestalt::task_data {
namespace {

using support::Json;
using support::indexed::IndexFile;
using support::indexed::IndexWriter;
using support::indexed::TokenType;

void need_no_modes(const IndexFile& file) {
  if (file.has_modes())
    throw Error(GESTALT_UNSUPPORTED,
                fmt::format("[{}.idx] gives modes to its sequences, expected a corpus of text alone", file.prefix()));
}

// Appends sequences [begin, end) as one document.
void append_document(const IndexFile& from, int64_t begin, int64_t end, IndexWriter* to) {
  std::vector<int32_t> ids;
  for (int64_t s = begin; s < end; ++s) {
    ids.resize(static_cast<size_t>(from.length(s)));
    from.read(s, 0, from.length(s), ids.data());
    to->add(ids);
  }
  to->end_document();
}

Json finished(const std::string& prefix, IndexWriter* writer, TokenType type) {
  writer->finish();
  Json out = Json::object();
  out.set("prefix", prefix);
  out.set("type", support::indexed::name_of(type));
  out.set("documents", writer->num_documents());
  out.set("sequences", writer->num_sequences());
  out.set("tokens", writer->num_tokens());
  return out;
}

// Sequences [begin, end) of `from` as a corpus of their own. A document without sequences goes with what follows it.
Json write_range(const IndexFile& from, int64_t begin, int64_t end, const std::string& prefix) {
  IndexWriter writer(prefix, from.type(), 0);
  const bool last = end == from.num_sequences();
  for (int64_t d = 0; d < from.num_documents(); ++d) {
    const int64_t first = from.boundary(d), next = from.boundary(d + 1);
    const bool empty_here = first == next && first >= begin && (first < end || last);
    if (std::max(first, begin) < std::min(next, end) || empty_here)
      append_document(from, std::max(first, begin), std::min(next, end), &writer);
  }
  return finished(prefix, &writer, from.type());
}

}  // namespace

Json merge_corpora(const std::vector<std::string>& prefixes, const std::string& out) {
  if (prefixes.empty()) throw InvalidArgument("[merge] no PREFIX given, expected the corpora to join");
  TokenType type = TokenType::kU8;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const IndexFile file(prefixes[i]);
    need_no_modes(file);
    if (i == 0 || support::indexed::num_ids(file.type()) > support::indexed::num_ids(type)) type = file.type();
  }
  IndexWriter writer(out, type, 0);
  for (const std::string& prefix : prefixes) {
    const IndexFile file(prefix);
    for (int64_t d = 0; d < file.num_documents(); ++d)
      append_document(file, file.boundary(d), file.boundary(d + 1), &writer);
  }
  return finished(out, &writer, type);
}

Json split_corpus(const std::string& prefix, const std::string& out, std::string_view split) {
  const IndexFile file(prefix);
  need_no_modes(file);
  const auto shares = support::indexed::parse_split(split);
  Json all = Json::array();
  double from = 0;
  for (size_t s = 0; s < shares.size(); ++s) {
    const double to = from + shares[s];
    const auto [begin, end] = support::indexed::split_range(file.num_sequences(), from, to);
    if (begin < end)
      all.push(write_range(file, begin, end, fmt::format("{}_{}", out, support::indexed::kSplitNames[s])));
    from = to;
  }
  return all;
}

Json cut_corpus(const std::string& prefix, const std::string& out, int64_t num_documents) {
  const IndexFile file(prefix);
  need_no_modes(file);
  if (num_documents < 1) throw InvalidArgument(fmt::format("[--documents] got {}, expected 1 or more", num_documents));
  Json all = Json::array();
  for (int64_t d = 0; d < file.num_documents();) {
    const int64_t n = std::min(num_documents, file.num_documents() - d);
    const std::string name = fmt::format("{}_{:05}", out, d / num_documents);
    IndexWriter writer(name, file.type(), 0);
    for (const int64_t last = d + n; d < last; ++d)
      append_document(file, file.boundary(d), file.boundary(d + 1), &writer);
    all.push(finished(name, &writer, file.type()));
  }
  return all;
}

}  // namespace gestalt::task_data
