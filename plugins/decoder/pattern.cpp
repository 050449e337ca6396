#include "plugins/decoder/pattern.h"

#include <algorithm>

#include "gestalt/error.hpp"
#include "gestalt/str.hpp"

namespace gestalt::decoder {

namespace {

struct OneBranch {
  char letter;
  std::string_view slot, mixer, feed_forward;
};
constexpr OneBranch kOneBranch[] = {{'*', "attention_layer", "attention", "none"},
                                    {'-', "mlp_layer", "none", "mlp"},
                                    {'M', "mamba_layer", "mamba", "none"},
                                    {'E', "moe_layer", "none", "moe"}};

// Slots that are parts of a layer or of the ends of the stack: a layer of such a name would share their settings.
constexpr std::string_view kTaken[] = {"embedding", "norm",    "head", "loss", "attention", "core_attention",
                                       "positions", "qk_norm", "mlp",  "moe",  "mamba"};

const OneBranch* of_letter(char letter) {
  for (const OneBranch& k : kOneBranch)
    if (k.letter == letter) return &k;
  return nullptr;
}

LayerKind kind(const OneBranch& k) { return {std::string(k.slot), k.mixer, k.feed_forward}; }

}  // namespace

std::vector<LayerKind> read_pattern(std::span<const gestalt_str> entries) {
  std::vector<LayerKind> kinds;
  for (const gestalt_str& s : entries) {
    const std::string entry(view_of(s));
    const auto named =
        std::find_if(std::begin(kOneBranch), std::end(kOneBranch), [&](const OneBranch& k) { return k.slot == entry; });
    if (named != std::end(kOneBranch)) {
      kinds.push_back(kind(*named));
    } else if (!entry.empty() && std::all_of(entry.begin(), entry.end(), of_letter)) {
      for (char letter : entry) kinds.push_back(kind(*of_letter(letter)));
    } else if (entry.empty() || entry.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
      throw Error(GESTALT_CONFIG_ERROR,
                  "[pattern] got '" + entry +
                      "', expected the slot of a layer in small letters, or letters of * (attention), "
                      "- (MLP), M (Mamba), E (mixture of experts)");
    } else if (std::find(std::begin(kTaken), std::end(kTaken), entry) != std::end(kTaken)) {
      throw Error(GESTALT_CONFIG_ERROR,
                  "[pattern] got '" + entry +
                      "', which is the slot of a part of the model, expected the name of a kind of layer");
    } else {
      kinds.push_back({entry, "attention", "mlp"});
    }
  }
  if (kinds.empty()) throw Error(GESTALT_CONFIG_ERROR, "[pattern] is empty, expected at least one kind of layer");
  return kinds;
}

}  // namespace gestalt::decoder
