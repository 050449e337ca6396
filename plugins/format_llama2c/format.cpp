// llama2.c, version 0: a header of seven integers and matrices in a fixed order, nothing named.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "gestalt/plugin.hpp"
#include "support/convert.h"
#include "support/file.h"

namespace gestalt::format_llama2c {

namespace {

namespace fs = std::filesystem;

struct Header {
  int64_t hidden, ffn, layers, heads, kv_heads, vocab, seq_len;
  bool own_head;
};

// One kind of matrix: a tensor of every layer, or a single one.
struct Kind {
  std::string_view name;
  int64_t count;  // layers, or 1
  int64_t rows, columns;
};

constexpr int64_t kLargest = int64_t{1} << 24;  // of any header field, so that no product overflows
constexpr uint64_t kHeaderBytes = 28;

// False when the numbers cannot be a header.
bool read_header(const support::ReadFile& file, Header* h) {
  if (file.size() < kHeaderBytes) return false;
  std::array<int32_t, 7> raw;
  file.read(0, raw.data(), kHeaderBytes);
  *h = {raw[0], raw[1], raw[2], raw[3], raw[4], raw[5] < 0 ? -int64_t{raw[5]} : int64_t{raw[5]}, raw[6], raw[5] < 0};
  for (int64_t v : {h->hidden, h->ffn, h->layers, h->heads, h->kv_heads, h->vocab, h->seq_len})
    if (v < 1 || v > kLargest) return false;
  return h->hidden % h->heads == 0 && h->heads % h->kv_heads == 0 && h->hidden / h->heads % 2 == 0 && h->layers <= 4096;
}

// In the order of the file.
std::vector<Kind> kinds(const Header& h) {
  const int64_t d = h.hidden / h.heads, l = h.layers;
  std::vector<Kind> all = {{"embedding", 1, h.vocab, h.hidden},
                           {"attention_norm", l, 1, h.hidden},
                           {"q", l, h.hidden, h.hidden},
                           {"k", l, h.kv_heads * d, h.hidden},
                           {"v", l, h.kv_heads * d, h.hidden},
                           {"out", l, h.hidden, h.hidden},
                           {"mlp_norm", l, 1, h.hidden},
                           {"gate", l, h.ffn, h.hidden},
                           {"down", l, h.hidden, h.ffn},
                           {"up", l, h.ffn, h.hidden},
                           {"final_norm", 1, 1, h.hidden},
                           {"rotary tables", 1, 2 * h.seq_len, d / 2}};
  if (h.own_head) all.push_back({"head", 1, h.vocab, h.hidden});
  return all;
}

uint64_t file_bytes(const Header& h) {
  unsigned __int128 bytes = kHeaderBytes;
  for (const Kind& k : kinds(h))
    bytes += static_cast<unsigned __int128>(k.count) * static_cast<uint64_t>(k.rows) * static_cast<uint64_t>(k.columns) * 4;
  return bytes > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(bytes);
}

// Which matrices, one below the other, give a logical tensor; '*' stands for the layer.
struct Rule {
  std::string_view before, after;  // around the layer's number; after is empty for a single tensor
  std::array<std::string_view, 3> kinds;
};
constexpr Rule kRules[] = {{"model.embedding.weight", "", {"embedding"}},
                           {"model.layers.", ".attention_norm.weight", {"attention_norm"}},
                           {"model.layers.", ".attention.qkv.weight", {"q", "k", "v"}},
                           {"model.layers.", ".attention.out.weight", {"out"}},
                           {"model.layers.", ".mlp_norm.weight", {"mlp_norm"}},
                           {"model.layers.", ".mlp.gate_up.weight", {"gate", "up"}},
                           {"model.layers.", ".mlp.down.weight", {"down"}},
                           {"model.final_norm.weight", "", {"final_norm"}},
                           {"model.head.weight", "", {"head"}}};

// A TOML basic string.
std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class Llama2cModel : public FormatModel {
 public:
  explicit Llama2cModel(const std::string& path) : file_(path) {
    if (!read_header(file_, &header_) || file_bytes(header_) != file_.size())
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] is not a llama2.c model of version 0: {} bytes, the header asks for "
                                                  "{}", path, file_.size(), file_bytes(header_)));
  }

  std::string config() const override {
    const fs::path path(file_.path());
    std::string tokenizer;
    for (const std::string& name : {std::string("tokenizer.bin"), fmt::format("tok{}.bin", header_.vocab)})
      if (tokenizer.empty() && fs::exists(path.parent_path() / name)) tokenizer = (path.parent_path() / name).string();
    std::string text = fmt::format(
        "[run]\nname = \"{}\"\n\n"
        "[plugins]\nuse = [\"gestalt.device_cpu\", \"gestalt.device_sim\", \"gestalt.kernels_cpu\", \"gestalt.comm_self\",\n"
        "  \"gestalt.decoder\", \"gestalt.attention\", \"gestalt.mlp\", \"gestalt.norm\", \"gestalt.format_llama2c\",\n"
        "  \"gestalt.ckpt_safetensors\"]\n\n"
        "[kernels]\ncpu = [\"gestalt.cpu\"]\n\n"
        "[model]\ntype = \"gestalt.decoder\"\nhidden = {}\nffn = {}\nlayers = {}\nheads = {}\nkv_heads = {}\nvocab = {}\n"
        "seq_len = {}\ntied = {}\nnorm_eps = 1e-5\nactivation = \"swiglu\"\nrope_interleaved = true\n\n"
        "[checkpoint]\ntype = \"gestalt.safetensors\"\n",
        "llama2c", header_.hidden, header_.ffn, header_.layers, header_.heads, header_.kv_heads, header_.vocab,
        header_.seq_len, !header_.own_head);
    if (!tokenizer.empty()) text += "\n[tokenizer]\ntype = \"gestalt.llama2c\"\nfile = " + toml_string(tokenizer) + "\n";
    return text;
  }

  bool read(std::string_view name, const gestalt_view& out) override {
    int64_t layer = 0;
    const Rule* rule = find(name, &layer);
    if (!rule || (rule->kinds[0] == "head" && !header_.own_head)) return false;
    std::vector<std::pair<uint64_t, uint64_t>> pieces;  // offset and floats
    int64_t rows = 0, columns = 0;
    for (std::string_view kind : rule->kinds) {
      if (kind.empty()) break;
      uint64_t offset = kHeaderBytes;
      for (const Kind& k : kinds(header_)) {
        const auto floats = static_cast<uint64_t>(k.rows * k.columns);
        if (k.name == kind) {
          pieces.emplace_back(offset + static_cast<uint64_t>(layer) * floats * 4, floats);
          rows += k.rows;
          columns = k.columns;
        }
        offset += static_cast<uint64_t>(k.count) * floats * 4;
      }
    }
    const int64_t total = std::accumulate(out.shape, out.shape + out.ndim, int64_t{1}, std::multiplies<>());
    if (total != rows * columns || (out.ndim > 1 && out.shape[0] != rows))
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[{}] '{}' has shape [{}, {}], expected {} elements", file_.path(), name, rows, columns, total));
    char* to = static_cast<char*>(out.data);
    for (const auto& [offset, floats] : pieces) {
      std::vector<float> values(floats);
      file_.read(offset, values.data(), floats * 4);
      support::convert_elements(values.data(), kF32, to, out.dtype, floats);
      to += floats * static_cast<uint64_t>(size_of(out.dtype));
    }
    std::lock_guard lock(mutex_);
    lines_[std::string(name)] = pieces.size() > 1 ? GESTALT_KEY_RESHAPED : GESTALT_KEY_LOADED;
    return true;
  }

  void report(const KeySink& sink) const override {
    std::lock_guard lock(mutex_);
    for (const auto& [name, kind] : lines_) sink.put(static_cast<uint64_t>(kind), name);
    if (!header_.own_head) sink.put(GESTALT_KEY_TIED, "the head <- the embedding");
    sink.put(GESTALT_KEY_IGNORED, "rotary tables");
  }

 private:
  const Rule* find(std::string_view name, int64_t* layer) const {
    for (const Rule& r : kRules) {
      if (r.after.empty() && name == r.before) return &r;
      if (r.after.empty() || name.size() <= r.before.size() + r.after.size() || name.substr(0, r.before.size()) != r.before ||
          name.substr(name.size() - r.after.size()) != r.after)
        continue;
      const std::string_view digits = name.substr(r.before.size(), name.size() - r.before.size() - r.after.size());
      if (digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string_view::npos) continue;
      *layer = std::stoll(std::string(digits));
      if (*layer < header_.layers) return &r;
    }
    return nullptr;
  }

  support::ReadFile file_;
  Header header_{};
  mutable std::mutex mutex_;
  std::map<std::string, int> lines_;
};

}  // namespace

class Llama2cFormat : public Format {
 public:
  static constexpr std::string_view name = "gestalt.llama2c";
  Llama2cFormat(Host, Attrs) {}

  bool detect(std::string_view path) const override {
    if (!fs::is_regular_file(path)) return false;
    Header h;
    const support::ReadFile file{std::string(path)};
    return read_header(file, &h) && file_bytes(h) == file.size();
  }
  std::unique_ptr<FormatModel> open(std::string_view path, std::string_view tensors_file, std::string_view) override {
    if (!tensors_file.empty())
      throw InvalidArgument("[gestalt.llama2c] got a file of tensors, expected none: the format has no names");
    return std::make_unique<Llama2cModel>(std::string(path));
  }
};
GESTALT_COMPONENT(Llama2cFormat)

}  // namespace gestalt::format_llama2c
