// What the verbs on written corpora find, as one JSON object each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/indexed/corpus.h"
#include "support/json.h"

namespace gestalt::task_data {

// Sizes, element type and lengths.
support::Json inspect_corpus(const std::string& prefix);

// Beyond what opening checks: sequences lie back to back and fill .bin, every id is below vocab_size (0: any id that
// fits). DATA_ERROR with file and byte of the first that is wrong.
support::Json verify_corpus(const std::string& prefix, int64_t vocab_size);

// Samples, epochs and left-over tokens for a sequence length and a wanted number of samples (-1: one epoch).
support::Json count_samples(const std::string& prefix, int64_t seq_len, int64_t num_samples);

// Writes document, sample and shuffle index of every split and corpus, and a mixture's two arrays, as .npy:
// <out>/<split>.sub<d>.document_index.npy and so on. Returns the sizes.
support::Json export_indices(const support::indexed::CorpusConfig& config, const std::string& out);

}  // namespace gestalt::task_data
