#pragma once

#include <string>
#include <string_view>

namespace gestalt::support::bpe {

std::string encode_base64(std::string_view bytes);
// Strict: padded to four, no other characters, no bits left over. False when it is wrong.
bool decode_base64(std::string_view text, std::string* bytes);

}  // namespace gestalt::support::bpe
