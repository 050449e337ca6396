#include "plugins/kernels_cpu/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/element.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

constexpr int64_t kDepth = 256;      // of one block: a panel of each operand stays in the first-level cache
constexpr int64_t kBlockPanels = 8;  // column panels that stay in the second-level cache
constexpr int64_t kGroupPanels = 8;  // row panels that go through them together

int64_t panels_of(int64_t size, int64_t width) { return (size + width - 1) / width; }

// As Loops::pack_left, from elements of another type.
template <class C, class T>
void pack_converted(const T* from, int64_t stride, int64_t depth_stride, int64_t size, int64_t width, int64_t depth,
                    C* panel) {
  if (size < width) std::fill(panel, panel + width * depth, C(0));
  // A few elements of depth at a time, so that each row of the source is read along.
  constexpr int64_t kStep = 16;
  for (int64_t begin = 0; begin < depth; begin += kStep) {
    const int64_t end = std::min(depth, begin + kStep);
    for (int64_t i = 0; i < size; ++i) {
      const T* row = from + i * stride;
      for (int64_t k = begin; k < end; ++k) panel[k * width + i] = convert<C>(row[k * depth_stride]);
    }
  }
}

// One operand seen along its rows or columns: the panels' elements are `stride` apart, the depth's `depth_stride`.
struct Side {
  const void* data;
  DType dtype;
  int64_t stride, depth_stride, width;
};

template <class C>
void pack(const Side& side, int64_t first, int64_t size, int64_t depth_begin, int64_t depth,
          decltype(Loops<C>::pack_left) same_type, C* panel) {
  const int64_t offset = first * side.stride + depth_begin * side.depth_stride;
  const auto converted = [&]<class T>(const T* data) {
    pack_converted<C, T>(data + offset, side.stride, side.depth_stride, size, side.width, depth, panel);
  };
  if (side.dtype == compute_dtype<C>())
    return same_type(static_cast<const C*>(side.data) + offset, side.stride, side.depth_stride, size, depth, panel);
  switch (side.dtype) {
    case kF32:
      return converted(static_cast<const float*>(side.data));
    case kF64:
      return converted(static_cast<const double*>(side.data));
    case kBF16:
      return converted(static_cast<const Bf16*>(side.data));
    default:
      return converted(static_cast<const F16*>(side.data));
  }
}

template <class F>
void share(const Parallel* team, int64_t n, int64_t grain, const F& f) {
  if (team != nullptr)
    (*team)(n, grain, f);
  else if (n > 0)
    f(int64_t{0}, n);
}

template <class C>
class Multiply {
 public:
  Multiply(const Product<C>& p, C* scratch)
      : p_(p),
        loops_(loops<C>()),
        rows_(loops_.tile_rows),
        cols_(loops_.tile_cols),
        row_panels_(panels_of(p.m, rows_)),
        col_panels_(panels_of(p.n, cols_)),
        a_(scratch),
        b_(scratch + row_panels_ * rows_ * p.k),
        in_place_(p.y_dtype == compute_dtype<C>() && p.y_col == 1) {}

  void run(const Parallel* team) {
    const int64_t threads = team != nullptr ? team->num_threads() : 1;
    share(team, row_panels_ + col_panels_, 1 + 16384 / (cols_ * std::max<int64_t>(p_.k, 1)),
          [this](int64_t begin, int64_t end) { pack_panels(begin, end); });
    // Narrow column blocks where there are too few row panels to go round.
    block_panels_ = kBlockPanels;
    while (block_panels_ > 1 && row_panels_ * panels_of(col_panels_, block_panels_) < 4 * threads) block_panels_ /= 2;
    const int64_t work = rows_ * cols_ * block_panels_ * std::max<int64_t>(p_.k, 1);
    share(team, row_panels_ * panels_of(col_panels_, block_panels_), 1 + (int64_t{1} << 18) / work,
          [this](int64_t begin, int64_t end) { compute(begin, end); });
  }

 private:
  // Panels of one operand: [depth block][panel][k in block][row or column in panel].
  static int64_t panel_at(int64_t depth_begin, int64_t depth, int64_t panels, int64_t panel, int64_t width) {
    return depth_begin * panels * width + panel * width * depth;
  }
  int64_t depth_at(int64_t begin) const { return std::min(kDepth, p_.k - begin); }

  void pack_panels(int64_t begin, int64_t end) {
    const Side left{p_.a.data, p_.a.dtype, p_.a.row, p_.a.col, rows_};
    const Side right{p_.b.data, p_.b.dtype, p_.b.col, p_.b.row, cols_};
    for (int64_t item = begin; item < end; ++item) {
      const bool is_left = item < row_panels_;
      const int64_t panel = is_left ? item : item - row_panels_;
      for (int64_t k = 0; k < p_.k; k += kDepth) {
        const int64_t depth = depth_at(k);
        if (is_left)
          pack(left, panel * rows_, std::min(rows_, p_.m - panel * rows_), k, depth, loops_.pack_left,
               a_ + panel_at(k, depth, row_panels_, panel, rows_));
        else
          pack(right, panel * cols_, std::min(cols_, p_.n - panel * cols_), k, depth, loops_.pack_right,
               b_ + panel_at(k, depth, col_panels_, panel, cols_));
      }
    }
  }

  // Units are (column block, row panel), row panels fastest; a group of units shares one block of b.
  void compute(int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t block = begin / row_panels_, panel = begin % row_panels_;
      const int64_t group = std::min({in_place_ ? kGroupPanels : 1, end - begin, row_panels_ - panel});
      const int64_t first_col = block * block_panels_ * cols_;
      const int64_t cols = std::min(p_.n - first_col, block_panels_ * cols_);
      if (in_place_) {
        C* y = static_cast<C*>(p_.y) + panel * rows_ * p_.y_row + first_col;
        compute_group(block, panel, group, y, p_.y_row, p_.accumulate);
      } else {
        alignas(64) C held[kMaxTileRows * kMaxTileCols * kBlockPanels];
        compute_group(block, panel, group, held, cols, false);
        store(held, panel * rows_, first_col, cols);
      }
      begin += group;
    }
  }

  void compute_group(int64_t block, int64_t panel, int64_t group, C* y, int64_t ldy, bool add) {
    const int64_t first = block * block_panels_, last = std::min(col_panels_, first + block_panels_);
    int64_t k = 0;
    do {
      const int64_t depth = depth_at(k);
      for (int64_t i = 0; i < group; ++i) {
        const C* a = a_ + panel_at(k, depth, row_panels_, panel + i, rows_);
        const int64_t rows = std::min(rows_, p_.m - (panel + i) * rows_);
        for (int64_t j = first; j < last; ++j)
          loops_.tile(depth, a, b_ + panel_at(k, depth, col_panels_, j, cols_),
                      y + i * rows_ * ldy + (j - first) * cols_, ldy, rows, std::min(cols_, p_.n - j * cols_),
                      k == 0 && !add, k == 0 && p_.bias != nullptr ? p_.bias + j * cols_ : nullptr);
      }
      k += kDepth;
    } while (k < p_.k);
  }

  void store(const C* held, int64_t first_row, int64_t first_col, int64_t cols) {
    const StoreFn<C> store = store_fn<C>(p_.y_dtype);
    for (int64_t i = 0; i < std::min(rows_, p_.m - first_row); ++i)
      store(held + i * cols,
            static_cast<char*>(p_.y) + ((first_row + i) * p_.y_row + first_col * p_.y_col) * size_of(p_.y_dtype),
            p_.y_col, cols, p_.accumulate);
  }

  const Product<C>& p_;
  const Loops<C>& loops_;
  int64_t rows_, cols_, row_panels_, col_panels_;
  C* a_;
  C* b_;
  bool in_place_;
  int64_t block_panels_ = kBlockPanels;
};

}  // namespace

template <class C>
int64_t multiply_scratch(int64_t m, int64_t n, int64_t k) {
  const Loops<C>& table = loops<C>();
  const int64_t elements =
      (panels_of(m, table.tile_rows) * table.tile_rows + panels_of(n, table.tile_cols) * table.tile_cols) * k;
  return (elements * static_cast<int64_t>(sizeof(C)) + 63) / 64 * 64;
}

template <class C>
void multiply(const Parallel* team, const Product<C>& product, void* scratch) {
  if (product.m > 0 && product.n > 0) Multiply<C>(product, static_cast<C*>(scratch)).run(team);
}

template int64_t multiply_scratch<float>(int64_t, int64_t, int64_t);
template int64_t multiply_scratch<double>(int64_t, int64_t, int64_t);
template void multiply<float>(const Parallel*, const Product<float>&, void*);
template void multiply<double>(const Parallel*, const Product<double>&, void*);

}  // namespace gestalt::kernels_cpu
