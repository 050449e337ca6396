// Where the pieces of a shard file lie in their logical tensors, as one JSON text in the file's metadata:
//   {"version":1,"tensors":{"w":{"global":[8,4],"offset":[4,0],"parts":[2,2,4]}}}
// "parts" is absent when empty. The text has an entry for every tensor of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gestalt::ckpt_safetensors {

inline constexpr std::string_view kLayoutKey = "gestalt.layout";

struct Layout {
  std::vector<int64_t> global, offset, parts;
};

// Throws INVALID_ARGUMENT or, with the given code, a message without place when the piece does not lie in its tensor.
void check_layout(const Layout& layout, const std::vector<int64_t>& shape, int32_t code);

class LayoutText {
 public:
  void add(std::string_view name, const Layout& layout);
  std::string finish();

 private:
  std::string text_;
};

std::unordered_map<std::string, Layout> parse_layouts(std::string_view text, std::string_view origin);

}  // namespace gestalt::ckpt_safetensors
