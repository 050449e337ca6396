#include "core/session/export_model.h"

#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/attr_list.h"
#include "core/session/session.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

constexpr double kTolerance = 1e-4;
constexpr int64_t kCheckTokens = 256;

// A run with its model, and logits of the fixed batch.
class OpenedModel {
 public:
  OpenedModel(const fs::path& target, std::vector<std::string> sets, const std::vector<std::string>& environment) {
    RunOptions options;
    options.target = target;
    options.sets = std::move(sets);
    options.environment = environment;
    options.uses_data = false;
    run_ = std::make_unique<Run>(options);
    session_ = std::make_unique<Session>(*run_, std::vector<std::string>{}, SessionOptions{.resume = "none"});
    session_->open_model("");
  }
  ~OpenedModel() {
    session_.reset();
    run_->shutdown();
  }
  OpenedModel(const OpenedModel&) = delete;

  Run& run() { return *run_; }
  Session& session() { return *session_; }

  // Ids that follow from their places alone.
  std::vector<float> logits() {
    Predictor& p = session_->predictor();
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < std::min(kCheckTokens, session_->seq_len()); ++i)
      ids.push_back(static_cast<int32_t>((i * 7919 + i * i * 31 + 1) % p.vocabulary()));
    std::vector<float> out(ids.size() * static_cast<size_t>(p.vocabulary()));
    p.logits(ids.data(), static_cast<int64_t>(ids.size()), out.data());
    return out;
  }

 private:
  std::unique_ptr<Run> run_;
  std::unique_ptr<Session> session_;
};

// What the format reads the model through.
class Source {
 public:
  explicit Source(OpenedModel& model) : model_(model) {
    ConfigNode keys = *model.run().config().find("model");
    keys.erase("type");
    config_ = to_attrs(keys);
    for (const Parameter* p : model.session().tree().parameters()) {
      gestalt_shard s{};
      s.struct_size = sizeof(s);
      s.name = str_of(p->path);
      s.global = p->global_shape.data();
      s.parts = p->parts.data();
      s.num_parts = p->parts.size();
      views_.emplace_back(p->type.dtype, p->global_shape);
      s.view = views_.back().view;
      shards_.push_back(s);
    }
    abi_ = {sizeof(abi_), this, config_.data(), config_.size(), shards_.data(), shards_.size(), read};
  }
  Source(const Source&) = delete;

  const gestalt_model_source* abi() const { return &abi_; }
  int64_t num_tensors() const { return static_cast<int64_t>(shards_.size()); }

 private:
  static gestalt_status* read(void* self, gestalt_str name, void* data, uint64_t bytes) noexcept {
    try {
      Session& s = static_cast<Source*>(self)->model_.session();
      const Parameter* p = s.tree().find(view_of(name));
      if (!p) fail(GESTALT_NOT_FOUND, "[{}] the model has no such tensor", view_of(name));
      const std::vector<char> values = s.store().read(s.store().weight(*p));
      if (values.size() != bytes)
        fail(GESTALT_INVALID_ARGUMENT, "[{}] room for {} bytes, expected {}", view_of(name), bytes, values.size());
      std::copy(values.begin(), values.end(), static_cast<char*>(data));
      return nullptr;
    } catch (...) {
      return status_of_current_exception();
    }
  }

  OpenedModel& model_;
  AttrList config_;
  std::deque<Tensor> views_;
  std::vector<gestalt_shard> shards_;
  gestalt_model_source abi_{};
};

// The options of the format: the caller's, and every text of [tokenizer] under "tokenizer.KEY".
AttrList format_options(const ExportOptions& o, const Config& config) {
  AttrList attrs;
  attrs.add("family", o.family.empty() ? config.str("model.family", "") : o.family);
  attrs.add("shard_bytes", o.shard_bytes);
  if (const ConfigNode* tokenizer = config.find("tokenizer"))
    for (const ConfigMember& m : tokenizer->members())
      if (m.value.is_string()) attrs.add("tokenizer." + m.key, m.value.as_string());
  return attrs;
}

void save(const ExportOptions& o, OpenedModel& model, const Source& source, const fs::path& folder) {
  const std::string name = o.format.find('.') == std::string::npos ? "gestalt." + o.format : o.format;
  Registry& registry = model.run().registry();
  std::vector<std::string> known;
  for (const Registry::Found& found : registry.found())
    for (const ComponentEntry& entry : found.manifest.components) {
      if (entry.kind != "format/1") continue;
      known.push_back(entry.name);
      if (entry.name != name) continue;
      registry.load({found.manifest.id});
      Instance format(registry.component(entry.kind, name), nullptr, 0);
      const auto* table = format.table<gestalt_format_1>();
      const AttrList options = format_options(o, model.run().config());
      check(format.component().host,
            table->save(format.self(), str_of(folder.native()), source.abi(), options.data(), options.size()),
            format.text());
      return;
    }
  fail(GESTALT_USAGE_ERROR, "[--format] got '{}', expected one of {}", o.format, join(known, ", "));
}

}  // namespace

ExportReport export_model(const ExportOptions& o) {
  std::error_code ec;
  if (fs::exists(o.folder, ec) && !fs::is_empty(o.folder, ec))
    fail(GESTALT_USAGE_ERROR, "[export] '{}' is there already, expected a folder that is empty or not there",
         o.folder.native());
  const fs::path folder = fs::absolute(o.folder).lexically_normal(), temporary = folder.native() + ".tmp";
  fs::remove_all(temporary, ec);
  if (!fs::create_directories(temporary, ec))
    fail(GESTALT_IO_ERROR, "[export] cannot make folder '{}': {}", temporary.native(), ec.message());
  try {
    ExportReport report;
    std::vector<float> wanted;
    std::string dtype;
    {
      OpenedModel model(o.model, o.sets, o.environment);
      const Source source(model);
      save(o, model, source, temporary);
      report.num_tensors = source.num_tensors();
      dtype = model.run().config().str("run.dtype");
      wanted = model.logits();
    }
    for (const auto& e : fs::directory_iterator(temporary)) report.bytes += e.file_size();
    OpenedModel written(temporary, {"run.dtype=" + dtype}, o.environment);
    const std::vector<float> got = written.logits();
    if (got.size() != wanted.size())
      fail(GESTALT_VALIDATION, "[export] the model that was written has {} logits, expected {}", got.size(),
           wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double d = std::fabs(static_cast<double>(got[i]) - static_cast<double>(wanted[i]));
      if (!(d <= report.difference)) report.difference = d;
    }
    report.num_tokens = std::min(kCheckTokens, written.session().seq_len());
    if (!(report.difference <= kTolerance))
      fail(GESTALT_VALIDATION, "[export] logits of what was written differ by {:.3g}, expected at most {:.0e}",
           report.difference, kTolerance);
    fs::remove(folder, ec);
    fs::rename(temporary, folder, ec);
    if (ec) fail(GESTALT_IO_ERROR, "[export] cannot rename '{}': {}", temporary.native(), ec.message());
    sync_folder(folder.parent_path());
    return report;
  } catch (...) {
    fs::remove_all(temporary, ec);
    throw;
  }
}

}  // namespace gestalt::core
