// Keeps built indices on disk, so that the next start maps them. A cache folder is named after the SHA-256 of the
// corpus and of everything that decides the arrays; any number of processes may build it at once.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "support/indexed/gpt_index.h"

namespace gestalt::support::indexed {

// `cache_dir` empty: build in memory. `corpus_digest`: of the corpus, see IndexFile::digest.
GptIndex load_or_build_gpt_index(const IndexFile& corpus, const std::array<uint8_t, 32>& corpus_digest,
                                 const GptIndexRequest& request, const std::string& cache_dir);

// The folder inside cache_dir.
std::string cache_name(const std::array<uint8_t, 32>& corpus_digest, const GptIndexRequest& request);

}  // namespace gestalt::support::indexed
