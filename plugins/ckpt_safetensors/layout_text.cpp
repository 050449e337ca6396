#include "plugins/ckpt_safetensors/layout_text.h"

#include "gestalt/error.hpp"
#include "support/json.h"

namespace gestalt::ckpt_safetensors {

namespace {

void append_list(std::string* text, std::string_view key, const std::vector<int64_t>& list) {
  text->append("\"").append(key).append("\":[");
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text->push_back(',');
    support::append_json_number(text, list[i]);
  }
  text->push_back(']');
}

}  // namespace

void check_layout(const Layout& layout, const std::vector<int64_t>& shape, int32_t code) {
  if (layout.global.size() != shape.size() || layout.offset.size() != shape.size()) {
    throw Error(code, "global shape and offset have " + std::to_string(layout.global.size()) + " and " +
                          std::to_string(layout.offset.size()) + " dimensions, expected " +
                          std::to_string(shape.size()));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t global = layout.global[i], offset = layout.offset[i];
    if (offset < 0 || shape[i] < 0 || offset > global || shape[i] > global - offset) {
      throw Error(code, "dimension " + std::to_string(i) + " lies outside its tensor, got offset " +
                            std::to_string(offset) + " and size " + std::to_string(shape[i]) + ", expected within " +
                            std::to_string(global));
    }
  }
  if (layout.parts.empty()) return;
  int64_t left = shape.empty() ? -1 : layout.global[0];
  for (int64_t part : layout.parts) {
    if (part < 0 || part > left) {
      left = -1;
      break;
    }
    left -= part;
  }
  if (left != 0) throw Error(code, "parts do not add up to dimension 0 of the global shape");
}

void LayoutText::add(std::string_view name, const Layout& layout) {
  text_.append(text_.empty() ? "{\"version\":1,\"tensors\":{" : ",");
  support::append_json_string(&text_, name);
  text_.append(":{");
  append_list(&text_, "global", layout.global);
  text_.push_back(',');
  append_list(&text_, "offset", layout.offset);
  if (!layout.parts.empty()) {
    text_.push_back(',');
    append_list(&text_, "parts", layout.parts);
  }
  text_.push_back('}');
}

std::string LayoutText::finish() { return text_.empty() ? "{\"version\":1,\"tensors\":{}}" : text_ + "}}"; }

std::unordered_map<std::string, Layout> parse_layouts(std::string_view text, std::string_view origin) {
  const support::Json root = support::parse_json(text, origin, {100'000'000, 4});
  std::unordered_map<std::string, Layout> layouts;
  try {
    if (root.i64("version") != 1) {
      throw Error(GESTALT_DATA_ERROR, "[version] got " + std::to_string(root.i64("version")) + ", expected 1");
    }
    for (const support::JsonMember& member : root.at("tensors").members()) {
      Layout& layout = layouts[member.key];
      layout.global = member.value.i64_list("global");
      layout.offset = member.value.i64_list("offset");
      if (member.value.has("parts")) layout.parts = member.value.i64_list("parts");
    }
  } catch (const Error& error) {
    throw Error(GESTALT_DATA_ERROR, "[" + std::string(origin) + "] " + error.what());
  }
  return layouts;
}

}  // namespace gestalt::ckpt_safetensors
