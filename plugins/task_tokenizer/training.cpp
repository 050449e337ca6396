#include "plugins/task_tokenizer/training.h"

#include <fmt/format.h>

#include <chrono>

#include "gestalt/error.hpp"
#include "support/bpe/tokenizer.h"
#include "support/bpe/train.h"
#include "support/sha256.h"
#include "support/text_input/input.h"

namespace gestalt::task_tokenizer {

support::Json train_tokenizer(const TrainOptions& options) {
  if (options.inputs.empty()) throw InvalidArgument("[--input] is needed");
  const auto begin = std::chrono::steady_clock::now();
  const support::bpe::Pattern pattern(options.pattern);
  support::bpe::Trainer trainer(pattern);
  int64_t bytes = 0;
  for (const std::string& path : options.inputs) {
    // Lines in blocks: a cut after a line end is a cut between pieces of the published patterns, but for white space at
    // a line's start.
    support::text_input::InputStream input(path);
    std::string text;
    constexpr size_t kBlock = size_t{64} << 20;
    for (bool more = true; more;) {
      const size_t had = text.size();
      text.resize(had + kBlock);
      size_t filled = had;
      while (filled < text.size()) {
        const uint64_t got = input.read(text.data() + filled, text.size() - filled);
        if (got == 0) break;
        filled += got;
      }
      more = filled == text.size();
      text.resize(filled);
      const size_t newline = more ? text.rfind('\n') : std::string::npos;
      const size_t end = newline == std::string::npos ? (more ? 0 : text.size()) : newline + 1;
      trainer.add(std::string_view(text).substr(0, end));
      bytes += static_cast<int64_t>(end);
      text.erase(0, end);
    }
  }
  const auto num_specials = static_cast<int64_t>(options.specials.size());
  const int64_t num_tokens = options.vocab_size - num_specials;
  if (num_tokens < 256)
    throw InvalidArgument(fmt::format("[--vocab-size] got {}, expected at least {}: 256 bytes and {} special tokens",
                                      options.vocab_size, 256 + num_specials, num_specials));
  support::bpe::Vocabulary vocabulary = trainer.train(num_tokens);
  std::vector<support::bpe::Special> specials;
  for (const std::string& text : options.specials)
    specials.push_back({text, static_cast<int32_t>(num_tokens) + static_cast<int32_t>(specials.size())});
  const std::string eos = options.specials.empty() ? "" : options.specials[0];
  support::bpe::save_trained(options.output, vocabulary, pattern.regex(), specials, eos);
  const support::bpe::Tokenizer back(support::bpe::load_tiktoken(options.output), "");

  support::Json out = support::Json::object();
  out.set("output", options.output);
  out.set("vocabulary", back.vocab_size());
  out.set("eos", back.special("eos"));
  out.set("text_bytes", bytes);
  out.set("distinct_pieces", trainer.num_distinct_pieces());
  out.set("fingerprint", support::hex(back.fingerprint()));
  out.set("seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return out;
}

}  // namespace gestalt::task_tokenizer
