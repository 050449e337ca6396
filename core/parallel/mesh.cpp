#include "core/parallel/mesh.h"

#include <algorithm>

namespace gestalt::core {

namespace {
// Experts are laid out inside the data-parallel ranks, so ep and etp do not multiply into the world.
constexpr std::string_view kOrder[] = {"tp", "cp", "dp", "pp"};
}  // namespace

Mesh::Mesh(const Config& config, int64_t rank, int64_t world) {
  std::vector<std::string> order = config.str_list("mesh.order");
  for (const std::string& name : order) {
    if (std::find(std::begin(kOrder), std::end(kOrder), name) == std::end(kOrder))
      fail(GESTALT_CONFIG_ERROR, "[mesh.order] got '{}', expected some of tp, cp, dp, pp", name);
    if (std::count(order.begin(), order.end(), name) > 1)
      fail(GESTALT_CONFIG_ERROR, "[mesh.order] names '{}' twice", name);
  }
  for (std::string_view name : kOrder)
    if (std::find(order.begin(), order.end(), name) == order.end()) order.emplace_back(name);
  int64_t known = 1;
  for (const std::string& name : order) {
    int64_t size = 0;  // 0: dp takes what the others leave
    const ConfigNode* node = config.find("mesh." + name);
    if (node && node->is_integer())
      size = node->as_integer();
    else if (name != "dp")
      size = 1;
    axes_.push_back({name, size, 0});
    if (size > 0) known *= size;
  }
  if (known <= 0 || world % known != 0)
    fail(GESTALT_CONFIG_ERROR, "[mesh] {} ranks cannot be arranged as {}; the product of the axes is {}", world, text(),
         known);
  for (Axis& a : axes_)
    if (a.size == 0) a.size = world / known;
  int64_t product = 1;
  for (const Axis& a : axes_) product *= a.size;
  if (product != world)
    fail(GESTALT_CONFIG_ERROR, "[mesh] {} asks for {} ranks, got {}; start with --nproc {}", text(), product, world,
         product);
  for (Axis& a : axes_) {
    a.index = rank % a.size;
    rank /= a.size;
  }
}

Mesh::Axis Mesh::axis(std::string_view name) const {
  for (const Axis& a : axes_)
    if (a.name == name) return a;
  return {std::string(name), 1, 0};
}

std::vector<int64_t> Mesh::ranks_along(std::string_view name) const {
  int64_t rank = 0, stride = 1, size = 1, step = 0;
  for (const Axis& a : axes_) {
    if (a.name == name) {
      size = a.size;
      step = stride;
    } else {
      rank += a.index * stride;
    }
    stride *= a.size;
  }
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < size; ++i) ranks.push_back(rank + i * step);
  return ranks;
}

std::string Mesh::text() const {
  std::string out;
  for (const Axis& a : axes_) out += (out.empty() ? "" : " ") + a.name + "=" + (a.size ? std::to_string(a.size) : "rest");
  return out;
}

}  // namespace gestalt::core
