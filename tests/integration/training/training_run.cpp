#include "tests/integration/training/training_run.h"

#include <fmt/format.h>
#include <bit>
#include <cstdlib>

#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"

namespace gestalt::test {

namespace fs = std::filesystem;
using namespace core;

namespace {

constexpr const char* kPlugins[] = {"adam",    "attention",  "ckpt_safetensors", "comm_self",   "data_text",
                                    "decoder", "device_cpu", "device_sim",       "kernels_cpu", "mlp",
                                    "norm",    "sgd",        "tokenizer_byte"};

constexpr const char* kRunFile = R"([run]
name = "training_test"
seed = 7
dtype = "f32"
device = "cpu"
output = "{output}"

[plugins]
use = ["gestalt.device_cpu", "gestalt.device_sim", "gestalt.kernels_cpu", "gestalt.comm_self", "gestalt.tokenizer_byte",
       "gestalt.data_text", "gestalt.decoder", "gestalt.attention", "gestalt.mlp", "gestalt.norm", "gestalt.adam",
       "gestalt.sgd", "gestalt.ckpt_safetensors"]

[model]
type = "gestalt.decoder"
hidden = 32
layers = 2
heads = 2
ffn = 64
vocab = 256
seq_len = 32

[tokenizer]
type = "gestalt.byte"

[data]
type = "gestalt.text"
path = "{text}"

[optimizer]
type = "gestalt.adamw"
lr = 1e-2
schedule = "cosine"
min_lr = 1e-4
warmup_steps = 3
decay_steps = 20
weight_decay = 0.1

[train]
global_batch = 4
micro_batch = 2

[checkpoint]
type = "gestalt.safetensors"
)";

std::string sample_text() {
  constexpr const char* kWords[] = {"river", "stone", "a",   "of the", "light", "went",
                                    "over",  "quiet", "and", "seven",  "hill",  "home"};
  std::string text;
  uint32_t x = 12345;
  for (int line = 0; line < 700; ++line) {
    for (int word = 0; word < 9; ++word) {
      x = x * 1664525u + 1013904223u;
      text += kWords[(x >> 20) % 12];
      text += word < 8 ? ' ' : '\n';
    }
  }
  return text;
}

std::string with(std::string text, const std::string& what, const std::string& value) {
  return text.replace(text.find(what), what.size(), value);
}

}  // namespace

bool plugins_built(const std::vector<std::string>& also) {
  std::vector<std::string> all(std::begin(kPlugins), std::end(kPlugins));
  all.insert(all.end(), also.begin(), also.end());
  for (const std::string& name : all) {
    if (fs::exists(fs::path(GESTALT_BUILD_DIR) / "lib/gestalt/plugins" / name / "plugin.toml")) continue;
    WARN("skipped: plugin '" << name << "' is not built");
    return false;
  }
  return true;
}

std::string clang_mlp_folder() {
  if (const char* folder = std::getenv("GESTALT_TEST_CLANG_MLP")) return folder;
  WARN("skipped: no GESTALT_TEST_CLANG_MLP; tests/integration/clang_mlp.sh builds acme.mlp and runs this case");
  return {};
}

std::string use_also(const std::string& id) {
  const Config base = Config::load(run_file());
  std::string list;
  for (const std::string& name : base.str_list("plugins.use")) list += "\"" + name + "\", ";
  return "plugins.use=[" + list + "\"" + id + "\"]";
}

const fs::path& work_folder() {
  static const TemporaryFolder folder;
  static const bool written = [] {
    folder.write("text.txt", sample_text());
    folder.write("run.toml", with(with(kRunFile, "{output}", (folder.path() / "run").native()), "{text}",
                                  (folder.path() / "text.txt").native()));
    return true;
  }();
  (void)written;
  return folder.path();
}

fs::path run_file() { return work_folder() / "run.toml"; }

TrainingRun::TrainingRun(const std::vector<std::string>& sets, const std::string& resume, const fs::path& target) {
  RunOptions options;
  options.target = target.empty() ? run_file() : target;
  options.sets = sets;
  run_ = std::make_unique<Run>(options);
  session_ = std::make_unique<Session>(*run_, std::vector<std::string>{}, SessionOptions{resume, false, {}});
  session_->open_model("");
  session_->open_data();
  session_->open_optimizer();
}

TrainingRun::~TrainingRun() {
  session_.reset();
  run_->registry().shutdown();
}

std::vector<StepBits> TrainingRun::steps(int num) {
  std::vector<StepBits> out;
  for (int i = 0; i < num; ++i) {
    const gestalt_step_result r = trainer().step();
    out.push_back({std::bit_cast<uint64_t>(r.loss), std::bit_cast<uint64_t>(r.grad_norm), std::bit_cast<uint64_t>(r.lr),
                   r.skipped});
  }
  return out;
}

Bytes TrainingRun::weights() {
  Bytes out;
  for (const Parameter* p : session_->tree().parameters()) out[p->path] = store().read(store().weight(*p));
  return out;
}

Bytes TrainingRun::gradients() {
  Bytes out;
  device().sync();
  for (const Parameter* p : session_->tree().parameters()) out[p->path] = store().read(store().gradient(*p));
  return out;
}

Bytes TrainingRun::all_state() {
  Bytes out = weights();
  for (const Parameter* p : session_->tree().parameters()) {
    if (const auto master = store().state(*p, -1); master.data) out["master." + p->path] = store().read(master);
    for (size_t i = 0; i < trainer().optimizer_states().size(); ++i)
      out[fmt::format("state{}.{}", i, p->path)] = store().read(store().state(*p, static_cast<int>(i)));
  }
  return out;
}

std::vector<std::string> differing(const Bytes& a, const Bytes& b) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : a)
    if (auto other = b.find(name); other == b.end() || other->second != bytes) names.push_back(name);
  for (const auto& [name, bytes] : b)
    if (!a.contains(name)) names.push_back(name);
  return names;
}

}  // namespace gestalt::test
