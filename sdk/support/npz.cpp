// The zip side of .npz: only what NumPy writes, read from the central directory, each claim checked against the file.
#include <algorithm>
#include <array>
#include <cstring>

#include "gestalt/error.hpp"
#include "support/npy.h"

#ifdef GESTALT_SUPPORT_ZLIB
#include <zlib.h>
#endif

namespace gestalt::support {

namespace {

constexpr uint32_t kEndRecord = 0x06054b50, kCentralHeader = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr uint64_t kEndBytes = 22, kCentralBytes = 46, kLocalBytes = 30;
constexpr uint64_t kMaxMembers = 100'000;
constexpr uint64_t kLargestRatio = 1032;  // of deflate; a larger claim is a lie

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Error(GESTALT_DATA_ERROR, "[" + path + "] " + problem);
}

uint64_t little(std::string_view text, uint64_t pos, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(text[pos + static_cast<uint64_t>(i)]);
  return value;
}

uint32_t crc_of(std::string_view text) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (char c : text) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 255] ^ crc >> 8;
  return ~crc;
}

#ifdef GESTALT_SUPPORT_ZLIB
std::string inflated(const std::string& path, const std::string& packed, uint64_t unpacked) {
  std::string out(unpacked, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error(GESTALT_OUT_OF_MEMORY, "[" + path + "] inflate");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  // zlib counts in 32 bits, so large members go in pieces.
  uint64_t in_left = packed.size(), out_left = unpacked;
  int result = Z_OK;
  do {
    if (stream.avail_in == 0) in_left -= stream.avail_in = static_cast<uInt>(std::min<uint64_t>(in_left, 1u << 30));
    if (stream.avail_out == 0) out_left -= stream.avail_out = static_cast<uInt>(std::min<uint64_t>(out_left, 1u << 30));
    result = inflate(&stream, Z_NO_FLUSH);
  } while (result == Z_OK && (stream.avail_out > 0 || out_left > 0 || stream.avail_in > 0 || in_left > 0));
  const bool whole =
      result == Z_STREAM_END && stream.avail_out == 0 && out_left == 0 && stream.avail_in == 0 && in_left == 0;
  inflateEnd(&stream);
  if (!whole) refuse(path, "deflated data is damaged or not of the size claimed");
  return out;
}
#else
std::string inflated(const std::string& path, const std::string&, uint64_t) {
  throw Error(GESTALT_UNSUPPORTED, "[" + path + "] is deflated, and this build has no zlib; save it with np.savez");
}
#endif

}  // namespace

NpzReader::NpzReader(std::string path, uint64_t max_member_bytes) : file_(std::move(path)) {
  const std::string& name = file_.path();
  if (file_.size() < kEndBytes) refuse(name, "too short for .npz, got " + std::to_string(file_.size()) + " bytes");
  // The end record is at the very end, before a comment of up to 65535 bytes.
  std::string tail(std::min<uint64_t>(file_.size(), kEndBytes + 65535), '\0');
  file_.read(file_.size() - tail.size(), tail.data(), tail.size());
  uint64_t at = tail.size() - kEndBytes;
  while (little(tail, at, 4) != kEndRecord || at + kEndBytes + little(tail, at + 20, 2) != tail.size()) {
    if (at-- == 0) refuse(name, "has no zip end record; is the file truncated?");
  }
  const uint64_t count = little(tail, at + 10, 2), bytes = little(tail, at + 12, 4), start = little(tail, at + 16, 4);
  const uint64_t end_position = file_.size() - tail.size() + at;
  if (little(tail, at + 4, 2) != 0 || little(tail, at + 6, 2) != 0 || little(tail, at + 8, 2) != count) {
    refuse(name, "is a zip archive in several parts");
  }
  if (start == 0xFFFFFFFF || count == 0xFFFF) refuse(name, "is a zip64 archive above 4 GiB, which is not read");
  if (start > end_position || bytes > end_position - start || count > kMaxMembers) {
    refuse(name, "has a zip directory outside the file");
  }
  std::string directory(bytes, '\0');
  file_.read(start, directory.data(), bytes);
  uint64_t pos = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (bytes - pos < kCentralBytes || little(directory, pos, 4) != kCentralHeader)
      refuse(name, "has a damaged zip directory");
    const uint64_t name_bytes = little(directory, pos + 28, 2), extra_bytes = little(directory, pos + 30, 2);
    const uint64_t entry_bytes = kCentralBytes + name_bytes + extra_bytes + little(directory, pos + 32, 2);
    if (bytes - pos < entry_bytes) refuse(name, "has a damaged zip directory");
    Member member;
    member.name = directory.substr(pos + kCentralBytes, name_bytes);
    member.method = static_cast<uint32_t>(little(directory, pos + 10, 2));
    member.crc = static_cast<uint32_t>(little(directory, pos + 16, 4));
    member.packed = little(directory, pos + 20, 4);
    member.unpacked = little(directory, pos + 24, 4);
    member.header_offset = little(directory, pos + 42, 4);
    if ((little(directory, pos + 8, 2) & 1) != 0) refuse(name, "member " + member.name + " is encrypted");
    if (member.method != 0 && member.method != 8) {
      refuse(name,
             "member " + member.name + " is packed by method " + std::to_string(member.method) + ", expected 0 or 8");
    }
    if (member.packed > file_.size() || member.header_offset > file_.size() || member.unpacked > max_member_bytes ||
        (member.method == 0 ? member.unpacked != member.packed : member.unpacked / kLargestRatio > member.packed)) {
      refuse(name, "member " + member.name + " claims " + std::to_string(member.unpacked) + " bytes from " +
                       std::to_string(member.packed));
    }
    if (member.name.size() > 4 && member.name.compare(member.name.size() - 4, 4, ".npy") == 0) {
      member.name.resize(member.name.size() - 4);
    }
    members_.push_back(std::move(member));
    pos += entry_bytes;
  }
  std::vector<std::string_view> sorted;
  for (const Member& member : members_) sorted.push_back(member.name);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) refuse(name, "holds member " + std::string(*twice) + " twice");
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

const NpzReader::Member* NpzReader::find(std::string_view name) const noexcept {
  for (const Member& member : members_) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

bool NpzReader::has(std::string_view name) const noexcept { return find(name) != nullptr; }

NpyArray NpzReader::read(std::string_view name) const {
  const Member* member = find(name);
  if (member == nullptr) {
    throw Error(GESTALT_NOT_FOUND, "[" + file_.path() + "] no array \"" + std::string(name) + "\" among " +
                                       std::to_string(members_.size()));
  }
  const std::string origin = file_.path() + ": " + member->name;
  std::string header(kLocalBytes, '\0');
  if (file_.size() - member->header_offset < kLocalBytes) refuse(origin, "starts outside the file");
  file_.read(member->header_offset, header.data(), kLocalBytes);
  if (little(header, 0, 4) != kLocalHeader) refuse(origin, "has no local header where the directory points");
  const uint64_t data = member->header_offset + kLocalBytes + little(header, 26, 2) + little(header, 28, 2);
  if (data > file_.size() || member->packed > file_.size() - data) refuse(origin, "ends outside the file");
  std::string bytes(member->packed, '\0');
  file_.read(data, bytes.data(), bytes.size());
  if (member->method == 8) bytes = inflated(origin, bytes, member->unpacked);
  if (crc_of(bytes) != member->crc) refuse(origin, "fails its checksum");
  return parse_npy(bytes, origin);
}

}  // namespace gestalt::support
