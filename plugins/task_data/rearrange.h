// Corpora out of corpora: several joined to one, one cut into several. The inputs stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/json.h"

namespace gestalt::task_data {

// Writes the documents of all `prefixes`, one corpus after the other, as `out`. Corpora of unlike types become the
// widest of them. UNSUPPORTED for corpora with modes.
support::Json merge_corpora(const std::vector<std::string>& prefixes, const std::string& out);

// Writes <out>_train, <out>_valid and <out>_test with the sequences that a run over `prefix` with this `split` would
// give to each; a share of 0 writes nothing. A document that a border cuts goes on as another document.
support::Json split_corpus(const std::string& prefix, const std::string& out, std::string_view split);

// Writes <out>_00000, <out>_00001, ... of `num_documents` documents each; the last may have fewer.
support::Json cut_corpus(const std::string& prefix, const std::string& out, int64_t num_documents);

}  // namespace gestalt::task_data
