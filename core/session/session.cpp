#include "core/session/session.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "core/base/host.h"
#include "core/config/attr_list.h"

#include <spdlog/spdlog.h>

namespace gestalt::core {

namespace fs = std::filesystem;

extern const gestalt_session_api kSessionApi;  // session_abi.cpp

Session::Session(Run& run, std::vector<std::string> arguments, SessionOptions options)
    : run_(run), abi_{{&kSessionApi}, this}, arguments_(std::move(arguments)), options_(std::move(options)) {
  for (const std::string& a : arguments_) argument_strs_.push_back(str_of(a));
}

Session::~Session() {
  for (Instance& t : trackers_)
    if (trackers_open_)
      if (gestalt_status* status = t.table<gestalt_tracker_1>()->flush(t.self()))
        spdlog::error("{}: {}", t.text(), take(status).message());
  // Work in flight must not outlive what it reads.
  if (machine_) try {
      machine_->device().sync();
    } catch (const Error& e) {
      spdlog::error("{}", e.message());
    }
}

Session& Session::of(gestalt_session* s) { return *reinterpret_cast<Abi*>(s)->self; }

Machine& Session::machine() {
  if (!machine_) machine_ = std::make_unique<Machine>(run_);
  return *machine_;
}

DataSource& Session::data() {
  if (!data_) data_ = std::make_unique<DataSource>(run_.registry(), run_.config());
  return *data_;
}

const ModelTree& Session::tree() {
  if (!tree_) tree_ = std::make_unique<ModelTree>(run_.registry(), run_.config(), machine().mesh(), run_.dtype());
  return *tree_;
}

ParameterStore& Session::store() {
  if (!store_) store_ = std::make_unique<ParameterStore>(machine().device(), tree());
  return *store_;
}

Trainer& Session::trainer() {
  if (!trainer_) fail(GESTALT_INVALID_ARGUMENT, "[session] train_step before open_optimizer");
  return *trainer_;
}

Predictor& Session::predictor() {
  if (!predictor_) predictor_ = std::make_unique<Predictor>(run_, machine(), tree(), store(), seq_len());
  return *predictor_;
}

Generation& Session::open_generation(const gestalt_generation& sizes) {
  generation_.reset();  // first give back, then ask for more
  const DataSource& d = data();
  const int64_t known = d.has_tokenizer() ? d.tokenizer()->vocab_size(d.tokenizer_self()) : 0;
  generation_ = std::make_unique<Generation>(run_, machine(), tree(), store(), seq_len(), known, sizes);
  return *generation_;
}

Generation& Session::generation() {
  if (!generation_) fail(GESTALT_INVALID_ARGUMENT, "[session] generate before open_generation");
  return *generation_;
}

void Session::open_model(const std::string& load_from) {
  std::string from = load_from;
  if (from.empty()) from = run_.checkpoint().native();
  if (from.empty() && options_.resume != "none") from = options_.resume;
  if (from.empty()) from = run_.config().str("checkpoint.load", "");
  resumes_auto_ = from == "auto";
  if (!from.empty()) reader_ = open_checkpoint(run_, from, options_.allow_older);
  if (reader_) {
    loaded_from_ = reader_->folder();
    loaded_ = reader_->manifest().state;
    load_state(*reader_, model_state(), false);
    spdlog::info("loaded '{}' (step {})", loaded_from_.native(), loaded_.step);
  } else if (run_.foreign()) {
    run_.foreign()->open().load(tree(), store());
    spdlog::info("loaded '{}'", run_.foreign()->path().native());
  } else if (const std::string init = run_.config().str("model.init_from", ""); !init.empty()) {
    if (!begin_as_foreign(init)) {
      CheckpointReader reader(run_.registry(), init);
      load_state(reader, model_state(), false);
    }
    spdlog::info("parameters begin as in '{}'", init);
  } else {
    store().initialise(run_.seed(), machine().mesh());
  }
}

void Session::open_optimizer() {
  open_data();
  trainer_ = std::make_unique<Trainer>(run_, machine(), tree(), store(), &data());
  check_rules();
  const fs::path folder = run_.output() / "checkpoints";
  const bool saves = !options_.saver_command.empty() && run_.config().has("checkpoint.type");
  if (saves && loaded_from_.empty() && options_.resume.empty() && !committed(folder).empty())
    fail(GESTALT_AMBIGUOUS, "[--resume] '{}' holds checkpoints: say '--resume auto' to go on from the newest, '--resume "
         "none' to begin again (they are set aside), or set run.output", run_.output().native());
  if (saves) {
    // Before the first update: a second training of the folder is refused, and the saver is ready. A saver that outlived
    // its trainer may have committed one more checkpoint before it gave the lock back.
    lock_checkpoints();
    const std::vector<Committed> all = committed(folder);
    if (resumes_auto_ && !all.empty() && (!reader_ || (all.back().path != loaded_from_ && !options_.allow_older)))
      reader_ = open_checkpoint(run_, "auto", options_.allow_older);
  }
  if (resumes_auto_ && !reader_) spdlog::info("no checkpoint below '{}': a new run", run_.output().native());
  if (reader_) resume_training();
  if (!saves) return;
  checkpoints_->start(options_.saver_command, loaded_from_.empty() ? -1 : loaded_.step);
  checkpoints_->prepare(model_state());
}

void Session::resume_training() {
  load_state(*reader_, model_state(), true);
  const std::string expected = reader_->manifest().digest;
  loaded_from_ = reader_->folder();
  loaded_ = reader_->manifest().state;
  reader_.reset();
  const TrainingState& state = loaded_;
  if (const auto* split = data().split("train"); split && !state.data_digest.empty() && split->digest != state.data_digest)
    fail(GESTALT_CONFIG_ERROR, "[data] the checkpoint '{}' was trained on other data (digest {}, now {}); start a new run or "
         "restore the corpus", loaded_from_.native(), state.data_digest, split->digest);
  const int64_t batch = run_.config().i64("train.global_batch");
  if (state.samples != state.step * batch)
    fail(GESTALT_CONFIG_ERROR, "[train.global_batch] the checkpoint has consumed {} samples in {} steps, which does not fit a "
         "global batch of {}", state.samples, state.step, batch);
  trainer_->set_steps_done(state.step);
  if (state.loss_scale > 0) trainer_->loss_scale().restore(static_cast<double>(state.loss_scale), state.good_steps);
  // Of what is in the model now, not of what the file says.
  const std::string digest = digest_of(model_state(), state);
  if (digest != expected)
    fail(GESTALT_INTERNAL, "[{}] the state in memory is {}, which is not the checkpoint's", loaded_from_.native(), digest);
  spdlog::info("resumed '{}' at step {} state {}", loaded_from_.native(), state.step, digest);
  for (const std::string& line : resume_differences(run_, loaded_from_)) spdlog::info("differs from the checkpoint: {}", line);
}

ModelState Session::model_state() {
  return {store(), tree(), trainer_ ? trainer_->optimizer_states() : std::vector<gestalt_optimizer_state>{},
          machine().mesh().text()};
}

void Session::lock_checkpoints() {
  checkpoints_ = std::make_unique<Checkpoints>(run_, [](const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  });
}

Checkpoints& Session::checkpoints() {
  if (!checkpoints_) {
    lock_checkpoints();
    checkpoints_->start(options_.saver_command, loaded_from_.empty() ? -1 : loaded_.step);
  }
  return *checkpoints_;
}

void Session::set_steps(int64_t steps) {
  if (run_.config().has("train.steps"))
    fail(GESTALT_INVALID_ARGUMENT, "[train.steps] is {} already, got {}", run_.config().i64("train.steps"), steps);
  run_.set_steps(steps);
  trainer().set_length(steps);
}

// A kernel rule or pin that reaches no op of the run is a setting without effect.
void Session::check_rules() {
  std::vector<const Program*> programs = {&trainer_->loss_program().compiled().program(),
                                          &trainer_->update_program().program()};
  const std::vector<std::string> unused = unused_rules(machine().policy(), programs);
  if (!unused.empty()) fail(GESTALT_CONFIG_ERROR, "{}", unused[0]);
}

gestalt_step_result Session::evaluate(const std::string& split, int64_t first, int64_t num) {
  open_data();
  const DataSource::Split* s = data().split(split);
  if (!s) fail(GESTALT_NOT_FOUND, "[data] has no split '{}'", split);
  const int64_t batch = run_.config().i64("train.micro_batch", run_.config().i64("train.global_batch", 1));
  auto& program = evaluators_[split];
  if (!program)
    program = std::make_unique<LossProgram>(run_, machine(), tree(), store(), data().batches(split, batch), false, nullptr, nullptr);
  if (num < 0) {
    if (s->num_samples < 0)
      fail(GESTALT_INVALID_ARGUMENT, "[evaluate] split '{}' is unlimited; say how many samples", split);
    num = s->num_samples - first;
  }
  if (num < 1 || first < 0 || (s->num_samples >= 0 && first + num > s->num_samples))
    fail(GESTALT_INVALID_ARGUMENT, "[evaluate] samples {} to {} of split '{}', which has {}", first, first + num, split,
         s->num_samples);
  gestalt_step_result r{};
  r.struct_size = sizeof(r);
  for (int64_t at = first; at < first + num; at += batch) {
    std::vector<int64_t> samples;
    for (int64_t i = at; i < std::min(at + batch, first + num); ++i) samples.push_back(i);
    r.weight += program->run(data().reader(split, samples), at > first, false);
    r.num_tokens += program->num_tokens();
  }
  r.loss = r.weight > 0 ? program->sums().at(program->loss_name() + ".sum") / r.weight : 0;
  r.step = trainer_ ? trainer_->steps_done() : loaded_.step;
  return r;
}

fs::path Session::save() {
  TrainingState state = loaded_;
  if (trainer_) {
    state.step = trainer_->steps_done();
    const LossScale& scale = trainer_->loss_scale();
    state.loss_scale = scale.adapts() ? static_cast<int64_t>(scale.value()) : 0;
    state.good_steps = scale.good_steps();
    state.samples = state.step * run_.config().i64("train.global_batch");
    if (const auto* split = data().split("train")) state.data_digest = split->digest;
  }
  return checkpoints().save(model_state(), state);
}

void Session::wait_saved() {
  if (checkpoints_) checkpoints_->finish();
}

const fs::path& Session::output_folder() {
  if (output_.empty()) {
    output_ = run_.output();
    std::error_code ec;
    fs::create_directories(output_, ec);
    if (ec) fail(GESTALT_IO_ERROR, "[run.output] cannot make folder '{}': {}", output_.native(), ec.message());
  }
  return output_;
}

// With what belongs to the whole run: configuration, plugins, kernels.
void Session::open_trackers() {
  if (trackers_open_) return;
  for (const std::string& name : run_.config().str_list("metrics.trackers")) {
    const ConfigNode* section = run_.config().find(join_path("metrics", name));
    const AttrList attrs = to_attrs(section ? *section : ConfigNode::table());
    Instance t(run_.registry().component("tracker/1", name), attrs.data(), attrs.size());
    check(t.component().host,
          t.table<gestalt_tracker_1>()->open(t.self(), str_of(output_folder().native()),
                                             str_of(run_.config().str("run.name")),
                                             loaded_from_.empty() ? -1 : loaded_.step),
          t.text());
    trackers_.push_back(std::move(t));
  }
  trackers_open_ = true;
  if (trackers_.empty()) return;
  const int64_t step = trainer_ ? trainer_->steps_done() : loaded_.step;
  std::string config;
  for (const auto& [path, node] : run_.config().leaves()) config += fmt::format("{} = {}\n", path, node->text());
  text(step, "config", config);
  std::string plugins;
  for (const Plugin& p : run_.registry().plugins())
    plugins += fmt::format("{} {}\n", p.manifest.id, p.manifest.version);
  text(step, "plugins", plugins);
  if (trainer_) text(step, "kernels", trainer_->loss_program().compiled().executable().binding().table());
}

void Session::metrics(int64_t step, const gestalt_metric* metrics, uint64_t num) {
  open_trackers();
  for (Instance& t : trackers_) {
    check(t.component().host, t.table<gestalt_tracker_1>()->write(t.self(), step, metrics, num), t.text());
    check(t.component().host, t.table<gestalt_tracker_1>()->flush(t.self()), t.text());
  }
}

void Session::text(int64_t step, const std::string& name, const std::string& text) {
  open_trackers();
  for (Instance& t : trackers_)
    if (const auto* table = t.table<gestalt_tracker_1>();
        table->struct_size > offsetof(gestalt_tracker_1, text) && table->text)
      check(t.component().host, table->text(t.self(), step, str_of(name), str_of(text)), t.text());
}

gestalt_run_info Session::info() {
  gestalt_run_info r{};
  r.struct_size = sizeof(r);
  r.step_flops = trainer_ && trainer_->steps_done() > 0 ? trainer_->step_flops() : 0;
  const Ledger::Line memory = machine().device().ledger().total();
  r.memory_bytes = memory.current;
  r.memory_peak_bytes = memory.peak;
  r.device = str_of(machine().device().name());
  r.dtype = str_of(dtype_name(run_.dtype()));
  return r;
}

gestalt_attr Session::config_value(std::string_view key) {
  const ConfigNode* node = run_.config().find(key);
  if (!node) fail(GESTALT_NOT_FOUND, "[{}] is not set", key);
  ConfigNode one = ConfigNode::table();
  one.insert("value", *node);
  config_values_.push_back(to_attrs(one));
  const gestalt_attr* a = config_values_.back().find("value");
  if (!a) fail(GESTALT_INVALID_ARGUMENT, "[{}] is a {}, expected a value or a list", key, node->kind_name());
  return *a;
}

}  // namespace gestalt::core
