#include "core/plugin/flags.h"

#include <fmt/format.h>

#include "gestalt/abi/plugin.h"

namespace gestalt::core {

namespace {
struct Flag {
  uint64_t bit;
  std::string_view word;
};
constexpr Flag kFlags[] = {
    {GESTALT_KERNEL_CAPTURABLE, "capturable"}, {GESTALT_KERNEL_DETERMINISTIC, "deterministic"},
    {GESTALT_KERNEL_STRIDED, "strided"},       {GESTALT_KERNEL_ACCUMULATES, "accumulates"},
    {GESTALT_KERNEL_ANY_SHAPE, "any_shape"},
};

std::string word_of(uint64_t bit, int index) {
  for (const Flag& f : kFlags)
    if (f.bit == bit) return std::string(f.word);
  return fmt::format("bit{}", index);
}
}  // namespace

std::optional<uint64_t> parse_kernel_flag(std::string_view word) {
  for (int i = 0; i < 64; ++i)
    if (word_of(uint64_t{1} << i, i) == word) return uint64_t{1} << i;
  return std::nullopt;
}

std::vector<std::string> kernel_flag_list(uint64_t flags) {
  std::vector<std::string> words;
  for (int i = 0; i < 64; ++i)
    if (flags >> i & 1) words.push_back(word_of(uint64_t{1} << i, i));
  return words;
}

std::string kernel_flag_names() {
  std::string names;
  for (const Flag& f : kFlags) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", f.word);
  return names;
}

}  // namespace gestalt::core
