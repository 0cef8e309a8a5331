// Instead of dplr-inl.h and double-inl.h where vectors have no doubles: what the scalar table does.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"
#include "rotrnn/kernels/simd/targets/tables.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

inline void dplr_sums(const DplrTile& tile, double* r) {
  table_scalar()->dplr_sums(tile, r);
}

inline void dplr_gradient(const DplrTile& tile, const double* g, double* out) {
  table_scalar()->dplr_gradient(tile, g, out);
}

inline size_t double_panel() {
  return table_scalar()->double_panel;
}

inline void add_product(double* c, size_t ldc, const double* a, const double* b, size_t K,
                        size_t rows, size_t columns, double sign) {
  table_scalar()->add_product(c, ldc, a, b, K, rows, columns, sign);
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
