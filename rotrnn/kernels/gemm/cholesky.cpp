#include "rotrnn/kernels/gemm/cholesky.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/gemm/double_outer.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

constexpr size_t kBlock = kCholeskyBlock;

/// The diagonal block: U by rows, then W = U⁻ᵀ, row by row:
///   W_ii = 1/U_ii,  W_ij = -(Σ_{j≤k<i} U_ki W_kj)/U_ii.
bool factor_block(double* a, size_t ld, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    double* row = a + k * ld;
    if (!(row[k] > 0)) return false;
    const double root = std::sqrt(row[k]);
    for (size_t j = k; j < n; ++j) row[j] /= root;
    for (size_t i = k + 1; i < n; ++i) {
      const double x = row[i];
      double* target = a + i * ld;
      for (size_t j = i; j < n; ++j) target[j] -= x * row[j];
    }
  }
  std::vector<double> w(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    double* row = w.data() + i * n;
    for (size_t k = 0; k < i; ++k) {
      const double x = a[k * ld + i];
      for (size_t j = 0; j <= k; ++j) row[j] -= x * w[k * n + j];
    }
    row[i] = 1;
    for (size_t j = 0; j <= i; ++j) row[j] /= a[i * ld + i];
  }
  for (size_t i = 0; i < n; ++i) std::copy_n(w.data() + i * n, i + 1, a + i * ld);
  return true;
}

/// Columns of a matrix that belong to the rows of one block.
struct Strip {
  double* rows;  // the first row of the matrix
  size_t ld, begin, end;
};

}  // namespace

// Right-looking, by rows of blocks. With the block row k of [W | A | B] multiplied by W_kk, all
// rows below lose U_kiᵀ times it: B and W are right-hand sides like the columns of A, W those of
// the identity. W has no columns behind its block and A none before, so they share one matrix.
bool cholesky(double* a, size_t ld, size_t n, bool inverse, double* b, size_t ldb, size_t m,
              int threads) {
  const Table& simd = table();
  const size_t panel = simd.double_panel;
  const auto panels = [panel](size_t width) { return (width + panel - 1) / panel; };
  for (size_t i = 0; inverse && i < n; ++i) std::fill_n(a + i * ld, i / kBlock * kBlock, 0.0);
  std::vector<double> packed((panels(n) + panels(m) + 2) * panel * kBlock);
  for (size_t k = 0; k < n; k += kBlock) {
    const size_t depth = std::min(kBlock, n - k), next = k + depth;
    double* diagonal = a + k * ld + k;
    if (!factor_block(diagonal, ld, depth)) return false;
    // Wᵀ of the block, as the left factor of products with K = depth.
    std::vector<double> w(depth * depth, 0.0);
    for (size_t i = 0; i < depth; ++i) {
      for (size_t j = 0; j <= i; ++j) w[j * depth + i] = diagonal[i * ld + j];
    }
    std::vector<double> left(panels(depth) * panel * depth);
    double_pack(left.data(), w.data(), depth, depth, depth);
    // The block row: W before the block, U behind it, the right-hand sides. Panels of them are
    // packed, multiplied in place and packed again, in this order.
    const Strip strips[] = {{a, ld, 0, inverse ? k : 0}, {a, ld, next, n}, {b, ldb, 0, m}};
    struct Panel {
      double* at;  // of row k
      size_t ld, column, width;
      const double* packed;
    };
    std::vector<Panel> row;
    double* space = packed.data();
    for (const Strip& s : strips) {
      for (size_t j = s.begin; j < s.end; j += panel, space += panel * depth) {
        row.push_back({s.rows + k * s.ld + j, s.ld, j, std::min(panel, s.end - j), space});
      }
    }
    std::atomic<size_t> turn{0};
    parallel_for(threads, [&](int) {
      for (size_t i; (i = turn++) < row.size();) {
        const Panel& p = row[i];
        auto* to = const_cast<double*>(p.packed);
        double_pack(to, p.at, p.ld, depth, p.width);
        for (size_t y = 0; y < depth; ++y) std::fill_n(p.at + y * p.ld, p.width, 0.0);
        for (size_t y = 0; y < depth; y += panel) {
          simd.add_product(p.at + y * p.ld, p.ld, left.data() + y * depth, to, depth,
                           std::min(panel, depth - y), p.width, 1);
        }
        double_pack(to, p.at, p.ld, depth, p.width);
      }
    });
    if (next == n) break;
    // The rows below, a panel of rows at a time. W_kk is a panel strip like the others.
    const size_t before = inverse ? panels(k) : 0, behind = panels(n - next);
    std::vector<double> own(inverse ? panels(depth) * panel * depth : 0);
    if (inverse) {
      for (size_t i = 0; i < depth; ++i) {
        for (size_t j = 0; j < depth; ++j) w[i * depth + j] = j <= i ? diagonal[i * ld + j] : 0;
      }
      double_pack(own.data(), w.data(), depth, depth, depth);
    }
    turn = 0;
    parallel_for(threads, [&](int) {
      for (size_t i; (i = turn++) < behind;) {
        const Panel& u = row[before + i];
        const auto subtract = [&](double* first, size_t width, size_t step, const double* right) {
          simd.add_product(first, step, u.packed, right, depth, u.width, width, -1);
        };
        const size_t at = u.column;  // the first of these rows
        for (size_t j = 0; j < row.size(); ++j) {
          if (j >= before && j < before + i) continue;  // A has its upper triangle alone
          const Panel& p = row[j];
          subtract(p.at + (at - k) * p.ld, p.width, p.ld, p.packed);
        }
        for (size_t j = 0; inverse && j < depth; j += panel) {
          subtract(a + at * ld + k + j, std::min(panel, depth - j), ld, own.data() + j * depth);
        }
      }
    });
  }
  return true;
}

void cholesky_back(const double* a, size_t ld, size_t n, double* b, size_t ldb, size_t m) {
  std::vector<double> rest(kBlock * m);
  for (size_t end = n; end > 0;) {
    const size_t k = (end - 1) / kBlock * kBlock, depth = end - k;
    for (size_t i = 0; i < depth; ++i) {
      double* row = b + (k + i) * ldb;
      for (size_t j = end; j < n; ++j) {
        const double x = a[(k + i) * ld + j];
        for (size_t c = 0; c < m; ++c) row[c] -= x * b[j * ldb + c];
      }
      std::copy_n(row, m, rest.data() + i * m);
      std::fill_n(row, m, 0.0);
    }
    for (size_t i = 0; i < depth; ++i) {  // U_kk⁻¹ = W_kkᵀ
      for (size_t j = 0; j <= i; ++j) {
        const double x = a[(k + i) * ld + k + j];
        for (size_t c = 0; c < m; ++c) b[(k + j) * ldb + c] += x * rest[i * m + c];
      }
    }
    end = k;
  }
}

}  // namespace rotrnn::kernels
