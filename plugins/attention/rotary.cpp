// Rotary positions on queries and keys (RoFormer), with the scalings of long contexts. Shape letters: t tokens, n heads,
// d head size.
#include <cmath>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"
#include "support/rotary_keys.h"

namespace gestalt::attention {

class Rotary : public Module {
 public:
  static constexpr std::string_view name = "gestalt.rotary";
  static constexpr auto keys = support::rotary_keys({});

  Rotary(Declare& d, const Attrs& c)
      : kind_(c.str("rope_kind")),
        short_(c.f64_list("rope_short_factor").begin(), c.f64_list("rope_short_factor").end()),
        long_(c.f64_list("rope_long_factor").begin(), c.f64_list("rope_long_factor").end()),
        interleaved_(c.boolean("rope_interleaved")),
        fraction_(c.f64("rope_fraction")) {
    table_.theta = c.f64("rope_theta");
    table_.factor = c.f64("rope_factor");
    table_.original_max = c.i64("rope_original_len");
    table_.low_freq_factor = c.f64("rope_low_freq_factor");
    table_.high_freq_factor = c.f64("rope_high_freq_factor");
    table_.beta_fast = c.f64("rope_beta_fast");
    table_.beta_slow = c.f64("rope_beta_slow");
    table_.truncate = c.boolean("rope_truncate");
    table_.mscale = c.f64("rope_mscale");
    table_.mscale_all_dim = c.f64("rope_mscale_all_dim");
    table_.attention_factor = c.f64("rope_attention_factor");
    table_.dtype = d.dtype() == kF64 ? kF64 : kF32;
  }

  std::vector<Tensor> emit(Build& b, std::span<const Tensor> qk) const {
    const int64_t dims = turned(qk[0].dim(2));
    const Tensor positions_t = b.batch("positions");
    std::vector<Tensor> out;
    if (kind_ == "default") {
      for (Tensor x_tnd : qk)
        out.push_back(ops::rotary(x_tnd, positions_t, {.theta = table_.theta, .dims = dims, .interleaved = interleaved_}));
      return out;
    }
    ops::RotaryTable t = table_;
    t.kind = kind_;
    t.dims = dims;
    t.short_factor = short_;
    t.long_factor = long_;
    const Tensor table = ops::rotary_table(positions_t, t);
    for (Tensor x_tnd : qk) out.push_back(ops::rotary_by_table(x_tnd, table, interleaved_));
    return out;
  }

 private:
  int64_t turned(int64_t head_size) const {
    return fraction_ == 1 ? head_size : static_cast<int64_t>(static_cast<double>(head_size) * fraction_);
  }

  std::string kind_;
  std::vector<double> short_, long_;
  bool interleaved_;
  double fraction_;
  ops::RotaryTable table_;
};
GESTALT_COMPONENT(Rotary)

}  // namespace gestalt::attention
