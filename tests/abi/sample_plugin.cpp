// The smallest plugin with one of each plane: an op with its gradient rule, a kernel of it, a component, a module.
#include <stdexcept>

#include "gestalt/plugin.hpp"

namespace {

using namespace gestalt;

struct Twice {
  static constexpr std::string_view schema = "sample.twice(x, ids?, *, factor: f64 = 2.0) -> (y)";
  static constexpr uint64_t flags = GESTALT_OP_PURE;
  static void infer(InferPlan& plan) {
    plan.expect_ndim(0, 1);
    plan.out(0, plan.in(0));
  }
  static constexpr auto vjp = vjp_by_op<"sample.twice_bwd">;
};

template <class Tag>
class Scale {
 public:
  static constexpr std::string_view op = Tag::op, device = "cpu", backend = "sample.cpu";
  static constexpr uint64_t flags = GESTALT_KERNEL_DETERMINISTIC;
  explicit Scale(Plan plan) : factor_(plan.attrs().f64("factor", 2.0)), parallel_(plan.host()) {
    if (!plan.in(0).is(kF32)) throw Unsupported("[sample.twice] got " + describe(plan.in(0)) + ", expected f32");
    if (factor_ == 13) throw std::runtime_error("thirteen");
    plan.workspace(256);
  }
  void run(Call call) const {
    const float* x = call.in(0).data<float>();
    float* y = call.out(0).data<float>();
    parallel_(call.in(0).numel(), 4, [&](int64_t begin, int64_t end) {
      if (x[begin] < 0) throw InvalidArgument("negative");
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] * static_cast<float>(factor_);
    });
  }

 private:
  double factor_;
  Parallel parallel_;
};

struct TwiceTag {
  static constexpr std::string_view op = "sample.twice";
};
struct TwiceBwdTag {
  static constexpr std::string_view op = "sample.twice_bwd";
};

class Letters : public Tokenizer {
 public:
  static constexpr std::string_view name = "sample.letters";
  static constexpr ConfigKey keys[] = {
      {.name = "first", .type = "i64", .default_value = "97", .min = "0", .max = "255", .doc = "byte with id 0"},
      {.name = "file", .type = "file", .doc = "not read", .required = true}};
  Letters(Host host, Attrs config) : first_(static_cast<int32_t>(config.i64("first"))) { host.info("letters made"); }
  void encode(std::string_view text, uint64_t, std::vector<int32_t>& ids) const override {
    for (unsigned char c : text) ids.push_back(c - first_);
  }
  void decode(std::span<const int32_t> ids, std::string& bytes) const override {
    for (int32_t id : ids) {
      if (id < 0 || id >= 26) throw InvalidArgument("[id] got " + std::to_string(id) + ", expected 0 to 25");
      bytes.push_back(static_cast<char>(id + first_));
    }
  }
  int64_t vocab_size() const override { return 26; }
  int64_t special(std::string_view role) const override {
    if (role == "throw") throw InvalidArgument("asked to");
    return -1;
  }
  std::array<uint8_t, 32> fingerprint() const override { return {1, 2, 3}; }

 private:
  int32_t first_;
};

class Stack : public Module {
 public:
  static constexpr std::string_view name = "sample.stack";
  static constexpr ConfigKey keys[] = {{.name = "hidden", .type = "i64", .required = true}};
  Stack(Declare& d, const Attrs& config)
      : up_(d.column_linear("up", config.i64("hidden"), {4, 4}, {.bias = true, .part_names = {"gate", "up"}})),
        norm_(d.norm("", config.i64("hidden"))) {}
  Tensor emit(Build& b, Tensor x) const { return ops::swiglu(b.call(up_, ops::rms_norm(x, b.param(norm_.weight)))); }

 private:
  Linear up_;
  Norm norm_;
};

}  // namespace

GESTALT_OP(Twice)
GESTALT_KERNEL(Scale<TwiceTag>)
GESTALT_KERNEL(Scale<TwiceBwdTag>)
GESTALT_COMPONENT(Letters)
GESTALT_COMPONENT(Stack)
GESTALT_PLUGIN("gestalt.sample", "1.2.3")
