// Reads the files that byte-level BPE vocabularies come in. A file that is wrong is a DATA_ERROR that names the file
// and the byte; one that is absent is NOT_FOUND.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/bpe/vocabulary.h"

namespace gestalt::support::bpe {

struct Special {
  std::string text;
  int32_t id = -1;
};

struct Loaded {
  Vocabulary vocabulary;  // without the specials
  std::vector<Special> specials;
  std::string pattern;                     // empty: the file does not say
  std::string eos;                         // empty: the file does not say
  std::string bos, pad, unk;               // likewise
  std::string begin;                       // special token before every text; empty: none
  std::vector<Vocabulary::Listed> listed;  // merges.txt only
};

// Lines "base64 rank". Beside it may lie PATH.json, the sidecar that save_trained writes.
Loaded load_tiktoken(const std::string& path);
// vocab.json and merges.txt in GPT-2's spelling of bytes. Entries that are neither a byte nor made by a merge are
// special tokens.
Loaded load_gpt2(const std::string& vocab_path, const std::string& merges_path);

// tokenizer.json of the tokenizers library; tokenizer_config.json beside it gives the roles of special tokens. Other
// kinds than byte-level BPE, and steps that change text, are refused.
Loaded load_hf(const std::string& path);
bool file_exists(const std::string& path);

// Special tokens that go with a published pattern's name; empty for any other text.
std::vector<Special> published_specials(std::string_view pattern);

// Writes PATH (ranks) and PATH.json (pattern and special tokens).
void save_trained(const std::string& path, const Vocabulary& vocabulary, const std::string& pattern,
                  const std::vector<Special>& specials, const std::string& eos);

}  // namespace gestalt::support::bpe
