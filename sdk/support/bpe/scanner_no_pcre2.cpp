#include "gestalt/error.hpp"
#include "support/bpe/scanner.h"

namespace gestalt::support::bpe {

bool has_pcre2() { return false; }

std::shared_ptr<const void> compile_pcre2(const std::string& regex) {
  throw Error(GESTALT_UNSUPPORTED,
              "[pattern] got \"" + regex +
                  "\", but this build has no PCRE2: only the published patterns gpt2, r50k_base, p50k_base, "
                  "cl100k_base and o200k_base work; build with PCRE2 installed for any other");
}

std::unique_ptr<Scanner> make_pcre2_scanner(std::shared_ptr<const void>) { return nullptr; }

}  // namespace gestalt::support::bpe
