#include "core/plugin/elf.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"

namespace gestalt::core {

namespace {

[[noreturn]] void refuse(const std::string& reason) { throw Error(GESTALT_CONFIG_ERROR, reason); }

const char* machine_name(uint16_t machine) {
  static constexpr struct {
    uint16_t machine;
    const char* name;
  } kMachines[] = {{EM_X86_64, "x86_64"}, {EM_386, "i386"},    {EM_AARCH64, "aarch64"}, {EM_ARM, "arm"},
                   {EM_RISCV, "riscv"},   {EM_PPC64, "ppc64"}, {EM_S390, "s390"},       {EM_MIPS, "mips"}};
  for (const auto& m : kMachines)
    if (m.machine == machine) return m.name;
  return nullptr;
}

// Bounds-checked access to the bytes of the file.
class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes) {}

  uint64_t size() const { return bytes_.size(); }

  bool contains(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

  template <class T>
  T at(uint64_t offset, const char* what) const {
    if (!contains(offset, sizeof(T)))
      refuse(fmt::format("truncated: {} at byte {} ends past the file's {} bytes", what, offset, bytes_.size()));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  // The string at `offset` of a string table at [table, table + table_size).
  std::string string(uint64_t table, uint64_t table_size, uint64_t offset, const char* what) const {
    if (!contains(table, table_size) || offset >= table_size)
      refuse(fmt::format("damaged: the name of {} lies outside its string table", what));
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + table + offset;
    const void* end = std::memchr(begin, 0, table_size - offset);
    if (!end) refuse(fmt::format("damaged: the name of {} has no end", what));
    return std::string(begin, static_cast<const char*>(end));
  }

 private:
  std::string_view bytes_;
};

Elf64_Ehdr read_header(const Image& image) {
  if (image.size() == 0) refuse("empty file, expected an ELF shared library");
  if (image.size() < EI_NIDENT) refuse(fmt::format("truncated: {} bytes, an ELF header has 64", image.size()));
  const auto ident = image.at<std::array<unsigned char, EI_NIDENT>>(0, "the ELF identification");
  if (std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0) refuse("not an ELF file");
  if (ident[EI_CLASS] != ELFCLASS64)
    refuse(fmt::format("{} ELF file, expected 64-bit x86_64",
                       ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "unknown class of"));
  if (ident[EI_DATA] != ELFDATA2LSB) refuse("big-endian ELF file, expected little-endian x86_64");
  const auto header = image.at<Elf64_Ehdr>(0, "the ELF header");
  if (header.e_machine != EM_X86_64) {
    const char* name = machine_name(header.e_machine);
    refuse(fmt::format("built for {}, this machine is x86_64",
                       name ? std::string(name) : fmt::format("machine {}", header.e_machine)));
  }
  if (header.e_type != ET_DYN)
    refuse(fmt::format("ELF type {}, expected a shared library (type {})", header.e_type, ET_DYN));
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    refuse(fmt::format("damaged: program headers of {} bytes, expected {}", header.e_phentsize, sizeof(Elf64_Phdr)));
  return header;
}

std::vector<Elf64_Phdr> read_segments(const Image& image, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    if (header.e_phoff > image.size()) refuse(fmt::format("truncated: program headers at byte {}", header.e_phoff));
    segments.push_back(image.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "a program header"));
    const Elf64_Phdr& s = segments.back();
    if (!image.contains(s.p_offset, s.p_filesz))
      refuse(fmt::format("truncated: segment {} needs {} bytes at byte {}, the file has {}", i, s.p_filesz, s.p_offset,
                         image.size()));
    if (s.p_type == PT_LOAD) {
      if (s.p_filesz > s.p_memsz) refuse(fmt::format("damaged: segment {} is larger in the file than in memory", i));
      if (s.p_vaddr + s.p_memsz < s.p_vaddr) refuse(fmt::format("damaged: segment {} wraps the address space", i));
      if ((s.p_vaddr - s.p_offset) % 4096 != 0) refuse(fmt::format("damaged: segment {} is not aligned to a page", i));
    }
  }
  if (segments.empty()) refuse("damaged: no program headers");
  return segments;
}

// Sections are not mapped, but a file cut in them was cut by someone.
void check_sections(const Image& image, const Elf64_Ehdr& header) {
  if (header.e_shnum == 0) return;
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    refuse(fmt::format("damaged: section headers of {} bytes, expected {}", header.e_shentsize, sizeof(Elf64_Shdr)));
  if (!image.contains(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    refuse(fmt::format("truncated: {} section headers at byte {}, the file has {} bytes", header.e_shnum,
                       header.e_shoff, image.size()));
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto s = image.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr), "a section header");
    if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL && !image.contains(s.sh_offset, s.sh_size))
      refuse(fmt::format("truncated: section {} needs {} bytes at byte {}, the file has {}", i, s.sh_size, s.sh_offset,
                         image.size()));
  }
}

// File offset of [address, address + size), which must lie in one loaded segment.
uint64_t offset_of(const std::vector<Elf64_Phdr>& segments, uint64_t address, uint64_t size, const char* what) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_LOAD || address < s.p_vaddr) continue;
    const uint64_t inside = address - s.p_vaddr;
    if (inside <= s.p_filesz && size <= s.p_filesz - inside) return s.p_offset + inside;
  }
  refuse(fmt::format("damaged: {} at address {:#x} is in no segment", what, address));
}

struct Dynamic {
  std::map<int64_t, uint64_t> values;
  std::vector<uint64_t> needed;

  std::optional<uint64_t> get(int64_t tag) const {
    auto it = values.find(tag);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  }
};

Dynamic read_dynamic(const Image& image, const std::vector<Elf64_Phdr>& segments) {
  Dynamic dynamic;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_DYNAMIC) continue;
    for (uint64_t i = 0; i < s.p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = image.at<Elf64_Dyn>(s.p_offset + i * sizeof(Elf64_Dyn), "the dynamic section");
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED)
        dynamic.needed.push_back(entry.d_un.d_val);
      else
        dynamic.values.emplace(entry.d_tag, entry.d_un.d_val);
    }
    return dynamic;
  }
  refuse("no dynamic section: not a shared library");
}

// The dynamic symbol table has no length; the hash table that the loader searches bounds it.
uint64_t count_symbols(const Image& image, const std::vector<Elf64_Phdr>& segments, const Dynamic& dynamic) {
  if (auto hash = dynamic.get(DT_HASH)) {
    const uint64_t at = offset_of(segments, *hash, 8, "the symbol hash table");
    return image.at<uint32_t>(at + 4, "the symbol hash table");
  }
  const auto gnu_hash = dynamic.get(DT_GNU_HASH);
  if (!gnu_hash) refuse("damaged: no symbol hash table");
  const uint64_t at = offset_of(segments, *gnu_hash, 16, "the symbol hash table");
  const uint64_t num_buckets = image.at<uint32_t>(at, "the symbol hash table");
  const uint64_t first = image.at<uint32_t>(at + 4, "the symbol hash table");
  const uint64_t bloom = image.at<uint32_t>(at + 8, "the symbol hash table");
  const uint64_t buckets = at + 16 + bloom * 8;
  if (!image.contains(buckets, num_buckets * 4)) refuse("damaged: the symbol hash table ends past the file");
  uint64_t last = 0;
  for (uint64_t i = 0; i < num_buckets; ++i)
    last = std::max<uint64_t>(last, image.at<uint32_t>(buckets + i * 4, "the symbol hash table"));
  if (last < first) return first;
  const uint64_t chains = buckets + num_buckets * 4;
  while ((image.at<uint32_t>(chains + (last - first) * 4, "the symbol hash table") & 1) == 0) ++last;
  return last + 1;
}

// Version numbers "2.34" compared number by number.
bool version_less(const std::string& a, const std::string& b) {
  auto parts = [](const std::string& text) {
    std::vector<uint64_t> out;
    for (size_t i = 0; i < text.size();) {
      uint64_t n = 0;
      auto [end, ec] = std::from_chars(text.data() + i, text.data() + text.size(), n);
      if (ec != std::errc()) break;
      out.push_back(n);
      i = static_cast<size_t>(end - text.data()) + 1;
    }
    return out;
  };
  return parts(a) < parts(b);
}

void read_needed_versions(const Image& image, const std::vector<Elf64_Phdr>& segments, const Dynamic& dynamic,
                          uint64_t strings, uint64_t strings_size, ElfFile& out) {
  const auto table = dynamic.get(DT_VERNEED);
  const auto count = dynamic.get(DT_VERNEEDNUM);
  if (!table || !count) return;
  std::set<std::string> versions;
  uint64_t at = offset_of(segments, *table, sizeof(Elf64_Verneed), "the version table");
  uint64_t num_entries = 0;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto need = image.at<Elf64_Verneed>(at, "the version table");
    uint64_t aux = at + need.vn_aux;
    for (uint64_t j = 0; j < need.vn_cnt; ++j) {
      const auto version = image.at<Elf64_Vernaux>(aux, "the version table");
      if (++num_entries > image.size() / sizeof(Elf64_Vernaux)) refuse("damaged: the version table overlaps itself");
      const std::string name = image.string(strings, strings_size, version.vna_name, "a version");
      if (name.starts_with("GLIBC_") && name.size() > 6 && name[6] >= '0' && name[6] <= '9') versions.insert(name);
      if (version.vna_next == 0) break;
      aux += version.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  out.glibc_versions.assign(versions.begin(), versions.end());
  for (const std::string& v : out.glibc_versions) {
    const std::string number = v.substr(6);
    if (out.glibc.empty() || version_less(out.glibc, number)) out.glibc = number;
  }
}

}  // namespace

bool ElfFile::has_export(std::string_view name) const {
  return std::binary_search(exports.begin(), exports.end(), name);
}

std::vector<int> ElfFile::abi_majors() const {
  static constexpr std::string_view kPrefix = "gestalt_plugin_main_v";
  std::vector<int> majors;
  for (const std::string& name : exports) {
    if (!name.starts_with(kPrefix)) continue;
    int major = 0;
    const char* end = name.data() + name.size();
    auto [stop, ec] = std::from_chars(name.data() + kPrefix.size(), end, major);
    if (ec == std::errc() && stop == end && major > 0) majors.push_back(major);
  }
  std::sort(majors.begin(), majors.end());
  return majors;
}

ElfFile parse_elf(std::string_view bytes) {
  const Image image(bytes);
  const Elf64_Ehdr header = read_header(image);
  const std::vector<Elf64_Phdr> segments = read_segments(image, header);
  check_sections(image, header);
  const Dynamic dynamic = read_dynamic(image, segments);

  ElfFile out;
  out.machine = machine_name(header.e_machine);
  for (const Elf64_Phdr& s : segments)
    if (s.p_type == PT_GNU_STACK) out.executable_stack = (s.p_flags & PF_X) != 0;
  out.constructors = dynamic.get(DT_INIT_ARRAYSZ).value_or(0) / sizeof(uint64_t);

  const auto strtab = dynamic.get(DT_STRTAB), symtab = dynamic.get(DT_SYMTAB);
  const uint64_t strings_size = dynamic.get(DT_STRSZ).value_or(0);
  if (!strtab || !symtab || strings_size == 0) refuse("damaged: no dynamic symbol table");
  const uint64_t strings = offset_of(segments, *strtab, strings_size, "the dynamic string table");
  for (uint64_t name : dynamic.needed)
    out.needed.push_back(image.string(strings, strings_size, name, "a needed library"));
  if (auto name = dynamic.get(DT_SONAME)) out.soname = image.string(strings, strings_size, *name, "the library");
  for (int64_t tag : {int64_t{DT_RUNPATH}, int64_t{DT_RPATH}})
    if (auto path = dynamic.get(tag)) out.run_path = image.string(strings, strings_size, *path, "the run path");

  const uint64_t num_symbols = count_symbols(image, segments, dynamic);
  if (num_symbols > image.size() / sizeof(Elf64_Sym)) refuse(fmt::format("damaged: claims {} symbols", num_symbols));
  const uint64_t symbols = offset_of(segments, *symtab, num_symbols * sizeof(Elf64_Sym), "the dynamic symbol table");
  for (uint64_t i = 1; i < num_symbols; ++i) {
    const auto symbol = image.at<Elf64_Sym>(symbols + i * sizeof(Elf64_Sym), "the dynamic symbol table");
    const unsigned bind = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || bind == STB_LOCAL) continue;
    out.exports.push_back(image.string(strings, strings_size, symbol.st_name, "a symbol"));
  }
  std::sort(out.exports.begin(), out.exports.end());
  read_needed_versions(image, segments, dynamic, strings, strings_size, out);
  return out;
}

}  // namespace gestalt::core
