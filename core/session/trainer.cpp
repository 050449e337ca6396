#include "core/session/trainer.h"

#include <chrono>
#include <cmath>
#include <cstring>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/attr_list.h"
#include "core/program/flops.h"
#include "core/tensor/finite.h"

namespace gestalt::core {

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

void* MetricSums::address(const std::string& name) {
  auto it = sums_.find(name);
  if (it == sums_.end()) it = sums_.emplace(name, device_.alloc(sizeof(double), Category::kOther)).first;
  return it->second.data();
}

std::map<std::string, double> MetricSums::read() {
  device_.sync();
  std::map<std::string, double> out;
  for (auto& [name, buffer] : sums_) device_.copy_to_host(&out[name], buffer.data(), sizeof(double));
  return out;
}

void bind_inputs(Compiled& compiled, const ModelTree& tree, const ParameterStore& store, const BatchBuffers* batch,
                 MetricSums* sums, void* step_scalars, void* step_seed) {
  for (const auto& [name, value] : compiled.program().inputs()) {
    const size_t colon = name.find(':');
    const std::string kind = name.substr(0, colon), rest = name.substr(colon + 1);
    void* data = nullptr;
    if (kind == "param")
      data = store.weight(*tree.find(rest)).data;
    else if (kind == "grad")
      data = store.gradient(*tree.find(rest)).data;
    else if (kind == "state")
      continue;  // of whoever generates
    else if (kind == "metric" && sums)
      data = sums->address(rest);
    else if (rest == "step_scalars")
      data = step_scalars;
    else if (rest == "step_seed")
      data = step_seed;
    else if (kind == "batch" && batch && batch->index(rest) >= 0)
      data = batch->device_data(static_cast<size_t>(batch->index(rest)));
    else
      continue;
    compiled.executable().bind_input(name, data);
  }
  compiled.forget_graphs();
}

LossProgram::LossProgram(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store,
                         const BatchSpec& batches, bool train, void* step_scalars, void* step_seed)
    : machine_(machine), sums_(machine.device()) {
  batch_ = std::make_unique<BatchBuffers>(machine.device(), batches.fields, batches.max_tokens, batches.max_sequences);
  compiled_ = std::make_unique<Compiled>(
      run.ops(), run.registry(), machine.device(), machine.policy(), static_cast<int>(machine.streams().size()),
      [](Program&) {},
      [&](Program& program) {
        Builder builder(program,
                        batch_fields(batches.fields, program.dims(), batches.max_tokens, batches.max_sequences),
                        train ? GESTALT_PHASE_TRAIN : GESTALT_PHASE_EVAL);
        builder.emit(tree.root(), {});
        if (program.losses.empty())
          fail(GESTALT_CONFIG_ERROR, "[model] '{}' reports no loss, so it cannot be trained", tree.root().component);
        loss_name_ = program.losses[0].name;
        if (!train) return;
        unused_ = add_gradients(builder, tree.parameters(), run.dtype() == GESTALT_F16);
        recompute(program, run.recompute_policy());
      });
  bind_inputs(*compiled_, tree, store, batch_.get(), &sums_, step_scalars, step_seed);
}

double LossProgram::load(const FillBatch& fill) {
  const auto begin = std::chrono::steady_clock::now();
  machine_.device().sync(machine_.streams()[0]);  // the staging memory is free again
  int64_t sequences = 0;
  fill(batch_->host(), &num_tokens_, &sequences);
  batch_->resize(num_tokens_, sequences);
  double weight = static_cast<double>(num_tokens_);
  if (const int64_t w = batch_->index("weights"); w >= 0) {
    weight = 0;
    const float* p = batch_->host()[static_cast<size_t>(w)].data<float>();
    for (int64_t i = 0; i < num_tokens_; ++i) weight += static_cast<double>(p[i]);
  }
  compiled_->attach(machine_.arenas());
  compiled_->set_dims(machine_.device(), {{"tokens", num_tokens_}, {"sequences", sequences}});
  batch_->upload(machine_.streams()[0]);
  data_seconds_ = seconds_since(begin);
  return weight;
}

double LossProgram::run(const FillBatch& fill, bool accumulate, bool capture) {
  const double weight = load(fill);
  compiled_->run(machine_.device(), machine_.streams(), accumulate, capture);
  return weight;
}

double LossProgram::run_eager(const FillBatch& fill, bool accumulate) {
  const double weight = load(fill);
  compiled_->executable().run_eager(machine_.streams(), accumulate, true);
  return weight;
}

double LossProgram::run_timed(const FillBatch& fill, bool accumulate, std::vector<Executable::NodeTime>& times) {
  const double weight = load(fill);
  compiled_->executable().run_timed(machine_.streams(), accumulate, times);
  return weight;
}

Trainer::Trainer(const Run& run, Machine& machine, const ModelTree& tree, ParameterStore& store, DataSource* data)
    : run_(run), tree_(tree), machine_(machine), store_(store), data_(data), schedule_(LearningRate::from(run.config())),
      scale_(run.dtype() == GESTALT_F16), seed_(run.seed()) {
  const Config& config = run.config();
  global_batch_ = config.i64("train.global_batch");
  micro_batch_ = config.i64("train.micro_batch", global_batch_);
  if (global_batch_ % micro_batch_ != 0)
    fail(GESTALT_CONFIG_ERROR, "[train] global_batch {} is not a multiple of micro_batch {}", global_batch_, micro_batch_);
  clip_ = config.f64("optimizer.clip");
  capture_ = config.boolean("run.capture", false);
  eager_ = config.str("run.debug", "none") == "eager";
  Device& device = machine.device();
  step_scalars_ = device.alloc(sizeof(host_scalars_), Category::kOther);
  step_seed_ = device.alloc(sizeof(host_seed_), Category::kOther);

  ConfigNode section = *config.find("optimizer");
  const std::string type = config.str("optimizer.type");
  const ComponentRef component = run.registry().component("optimizer/1", type);
  ConfigNode own = ConfigNode::table();
  for (const ConfigMember& m : section.members())
    for (uint64_t i = 0; i < component.component->num_keys; ++i)
      if (m.key == view_of(component.component->keys[i].name)) own.insert(m.key, m.value);
  const AttrList attrs = to_attrs(own);
  optimizer_ = Instance(component, attrs.data(), attrs.size());
  gestalt_optimizer_info info{};
  info.struct_size = sizeof(info);
  check(component.host, optimizer_.table<gestalt_optimizer_1>()->describe(optimizer_.self(), &info), optimizer_.text());
  states_.assign(info.states, info.states + info.num_states);
  if (info.granularity != GESTALT_GRANULARITY_ELEMENT)
    fail(GESTALT_UNSUPPORTED, "[optimizer] '{}' updates whole matrices, expected granularity 'element'", type);

  const float decay = static_cast<float>(config.f64("optimizer.weight_decay"));
  const ConfigNode* groups = config.find("optimizer.groups");
  std::vector<bool> matched(groups ? groups->elements().size() : 0, false);
  store.open_training(states_, [&](const Parameter& p) {
    ParameterStore::Hyper h{p.group == "decay" ? decay : 0.0f, 1.0f};
    for (size_t i = 0; i < matched.size(); ++i) {
      const std::string at = fmt::format("optimizer.groups[{}].", i);
      if (!glob_match(config.str(at + "where"), p.path)) continue;
      matched[i] = true;
      h.decay = static_cast<float>(config.f64(at + "weight_decay", h.decay));
      h.lr_scale = static_cast<float>(config.f64(at + "lr_scale", 1.0));
    }
    return h;
  });
  for (size_t i = 0; i < matched.size(); ++i)
    if (!matched[i])
      fail(GESTALT_CONFIG_ERROR, "{}: [optimizer.groups] where = '{}' has no effect: no parameter matches",
           groups->elements()[i].origin.position(), config.str(fmt::format("optimizer.groups[{}].where", i)));

  update_ = make_update();
  if (data) make_loss(data->batches(split_, micro_batch_));
}

void Trainer::make_loss(const BatchSpec& batches) {
  loss_ = std::make_unique<LossProgram>(run_, machine_, tree_, store_, batches, true, step_scalars_.data(),
                                        step_seed_.data());
  std::string why;
  if (capture_)
    for (const Compiled* c : {&loss_->compiled(), static_cast<const Compiled*>(update_.get())})
      if (!c->executable().capturable(&why))
        fail(GESTALT_CONFIG_ERROR, "[run.capture] the step cannot be captured: {}", why);
}

std::unique_ptr<Compiled> Trainer::make_update() {
  auto flat_name = [](size_t flat, const std::string& what) { return fmt::format("flat:{}.{}", flat, what); };
  auto compiled = std::make_unique<Compiled>(
      run_.ops(), run_.registry(), machine_.device(), machine_.policy(), 1, [](Program&) {},
      [&](Program& program) {
        Builder b(program, {}, GESTALT_PHASE_AFTER_BACKWARD);
        b.region = Region::kUpdate;
        b.path = "optimizer";
        Value* scalars = b.batch("step_scalars", true);
        Value* sum = nullptr;
        for (size_t i = 0; i < store_.flats().size(); ++i) {
          const auto& f = store_.flats()[i];
          Value* g = program.input(flat_name(i, "grad"), TensorType(accumulation_dtype(f.dtype), {f.length}));
          Value* s = b.op("core.sum_squares", {g});
          if (sum && sum->type.dtype != s->type.dtype)
            s = b.op("core.cast", {s}, {{"dtype", std::string(dtype_name(sum->type.dtype))}});
          sum = sum ? b.op("core.add", {sum, s}) : s;
        }
        auto clip = b.apply("core.norm_clip_scale", {sum, scalars}, {{"max_norm", clip_}});
        program.outputs["clip"] = clip[0];
        program.outputs["grad_norm"] = clip[1];
        for (size_t i = 0; i < store_.flats().size(); ++i) {
          const auto& f = store_.flats()[i];
          const auto segments = static_cast<int64_t>(f.segments.size());
          std::vector<Value*> states;
          for (const gestalt_optimizer_state& s : states_)
            states.push_back(program.input(flat_name(i, std::string(view_of(s.name))),
                                           TensorType(store_.state_dtype(f, s), {f.length})));
          gestalt_optimizer_step step{};
          step.struct_size = sizeof(step);
          step.param = program.input(flat_name(i, "param"), TensorType(f.dtype, {f.length}));
          if (f.master)
            step.master = program.input(flat_name(i, "master"), TensorType(accumulation_dtype(f.dtype), {f.length}));
          step.grad = program.input(flat_name(i, "grad"), TensorType(accumulation_dtype(f.dtype), {f.length}));
          step.states = states.data();
          step.num_states = states.size();
          step.segments = program.input(flat_name(i, "segments"), TensorType(GESTALT_I64, {segments, 2}));
          step.segment_hyper = program.input(flat_name(i, "segment_hyper"), TensorType(GESTALT_F32, {segments, 2}));
          step.scalars = scalars;
          step.clip = clip[0];
          check(optimizer_.component().host,
                optimizer_.table<gestalt_optimizer_1>()->emit_step(optimizer_.self(), b.abi(), &step), optimizer_.text());
        }
      });
  for (size_t i = 0; i < store_.flats().size(); ++i) {
    auto& f = store_.flats()[i];
    Executable& e = compiled->executable();
    e.bind_input(flat_name(i, "grad"), f.gradients.data());
    e.bind_input(flat_name(i, "param"), f.weights.data());
    if (f.master) e.bind_input(flat_name(i, "master"), f.master.data());
    for (size_t s = 0; s < states_.size(); ++s)
      e.bind_input(flat_name(i, std::string(view_of(states_[s].name))), f.states[s].data());
    e.bind_input(flat_name(i, "segments"), f.segment_table.data());
    e.bind_input(flat_name(i, "segment_hyper"), f.segment_hyper.data());
  }
  bind_inputs(*compiled, tree_, store_, nullptr, nullptr, step_scalars_.data(), step_seed_.data());
  return compiled;
}

// Back from batches of run_batch to those of the data set.
void Trainer::use_data() {
  if (!host_batches_) return;
  make_loss(data_->batches(split_, micro_batch_));
  host_batches_ = false;
}

void Trainer::upload_seed() {
  const auto step = static_cast<uint64_t>(steps_done_);
  machine_.device().sync(machine_.streams()[0]);
  host_seed_ = {static_cast<int32_t>(seed_), static_cast<int32_t>(seed_ >> 32), static_cast<int32_t>(step),
                static_cast<int32_t>(step >> 32)};
  machine_.device().copy_to_device(step_seed_.data(), host_seed_.data(), sizeof(host_seed_), machine_.streams()[0]);
  if (scale_.adapts()) upload_scalars(0, 0);
}

void Trainer::upload_scalars(double rate, double inv_tokens) {
  host_scalars_ = {};
  host_scalars_[GESTALT_SCALAR_LR] = static_cast<float>(rate);
  host_scalars_[GESTALT_SCALAR_STEP] = static_cast<float>(steps_done_ + 1);
  host_scalars_[GESTALT_SCALAR_INV_TOKENS] = static_cast<float>(inv_tokens);
  host_scalars_[GESTALT_SCALAR_LOSS_SCALE] = static_cast<float>(scale_.value());
  machine_.device().copy_to_device(step_scalars_.data(), host_scalars_.data(), sizeof(host_scalars_),
                                   machine_.streams()[0]);
}

double Trainer::accumulate(const FillBatch& fill, bool more) {
  return eager_ ? loss_->run_eager(fill, more) : loss_->run(fill, more, capture_);
}

double Trainer::accumulate_gradients(const std::vector<int64_t>& samples) {
  use_data();
  upload_seed();
  loss_->run(data_->reader(split_, samples), false, false);
  return loss_->sums().at(loss_->loss_name() + ".sum");
}

double Trainer::run_batch(const BatchSpec& size, const FillBatch& fill, bool more) {
  if (!loss_ || !host_batches_ || !loss_->fits(size.max_tokens, size.max_sequences)) {
    if (more)
      fail(GESTALT_INVALID_ARGUMENT, "[run_batch] {} tokens in {} sequences are more than the first batch had, expected "
           "the largest batch first", size.max_tokens, size.max_sequences);
    make_loss(size);
    host_batches_ = true;
  }
  upload_seed();
  const double weight = accumulate(fill, more);
  batch_weight_ = more ? batch_weight_ + weight : weight;
  return weight;
}

gestalt_step_result Trainer::update(double rate) {
  if (!loss_) fail(GESTALT_INVALID_ARGUMENT, "[update] comes before any run_batch with gradients");
  gestalt_step_result r{};
  r.struct_size = sizeof(r);
  r.weight = batch_weight_;
  finish(r, rate < 0 ? schedule_.at(steps_done_) : rate);
  return r;
}

// The samples of one micro-batch of a step.
void Trainer::set_samples(int64_t step, int64_t first) {
  samples_.clear();
  for (int64_t i = 0; i < micro_batch_; ++i) samples_.push_back(step * global_batch_ + first + i);
}

double Trainer::step_flops() const {
  if (!loss_) return 0;
  return training_flops(loss_->compiled().program()) * static_cast<double>(global_batch_ / micro_batch_);
}

gestalt_step_result Trainer::step(const PutTime* put) {
  const auto begin = std::chrono::steady_clock::now();
  gestalt_step_result r{};
  r.struct_size = sizeof(r);
  use_data();
  upload_seed();
  for (int64_t first = 0; first < global_batch_; first += micro_batch_) {
    set_samples(steps_done_, first);
    const FillBatch read = data_->reader(split_, samples_);
    if (put) {
      std::vector<Executable::NodeTime> times;
      r.weight += loss_->run_timed(read, first > 0, times);
      for (const Executable::NodeTime& t : times) (*put)(loss_->compiled().program(), t);
    } else {
      r.weight += accumulate(read, first > 0);
    }
    r.num_tokens += loss_->num_tokens();
    r.data_seconds += loss_->data_seconds();
  }
  finish(r, schedule_.at(steps_done_), put);
  r.step_seconds = seconds_since(begin);
  return r;
}

void Trainer::find_not_finite() {
  for (const Parameter* p : tree_.parameters()) {
    const std::vector<char> bytes = store_.read(store_.weight(*p));
    if (const int64_t i = first_not_finite(bytes.data(), p->type.dtype, bytes.size()); i >= 0)
      fail(GESTALT_VALIDATION, "[{}] element {} of the parameter is not finite", p->path, i);
  }
  if (steps_done_ == 0) return;
  use_data();
  --steps_done_;  // the seed of the step
  upload_seed();
  ++steps_done_;
  for (int64_t first = 0; first < global_batch_; first += micro_batch_) {
    set_samples(steps_done_ - 1, first);
    loss_->run_eager(data_->reader(split_, samples_), first > 0);
  }
}

// The update with the gradients of the batches whose weight r holds.
void Trainer::finish(gestalt_step_result& r, double rate, const PutTime* put) {
  r.lr = rate;
  upload_scalars(r.lr, r.weight > 0 ? 1 / (r.weight * scale_.value()) : 0);
  update_->attach(machine_.arenas());
  if (put) {
    std::vector<Executable::NodeTime> times;
    update_->executable().run_timed(machine_.streams(), false, times);
    for (const Executable::NodeTime& t : times) (*put)(update_->program(), t);
  } else if (eager_)
    update_->executable().run_eager(machine_.streams(), false, false);
  else
    update_->run(machine_.device(), machine_.streams(), false, capture_);
  const std::map<std::string, double> sums = loss_->sums();
  float norm = 0, clip = 0;
  machine_.device().copy_to_host(&norm, update_->executable().output("grad_norm").view.data, sizeof(norm));
  machine_.device().copy_to_host(&clip, update_->executable().output("clip").view.data, sizeof(clip));
  const double sum = sums.at(loss_->loss_name() + ".sum");
  r.loss = r.weight > 0 ? sum / r.weight : 0;
  r.grad_norm = static_cast<double>(norm);
  r.skipped = clip < 0;
  scale_.step(!r.skipped);
  r.step = ++steps_done_;
}

}  // namespace gestalt::core
