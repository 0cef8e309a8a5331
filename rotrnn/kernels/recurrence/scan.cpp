#include "rotrnn/kernels/recurrence/scan.h"

#include <algorithm>

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

// Rows per kernel call: sums over rows are float inside a call and double between calls.
constexpr size_t kRows = 128;

ptrdiff_t signed_step(size_t step, bool reverse) {
  const auto s = static_cast<ptrdiff_t>(step);
  return reverse ? -s : s;
}

}  // namespace

void scan_forward(const ScanSystem& s, float* z, size_t ld, size_t rows, float* state) {
  if (rows == 0) return;
  const size_t first = s.reverse ? rows - 1 : 0;
  const size_t at = first * s.lambda_stride;
  table().scan({z + first * ld, signed_step(ld, s.reverse)}, rows, s.S,
               {s.lambda_re + at, s.lambda_im + at, signed_step(s.lambda_stride, s.reverse)},
               state);
}

void scan_backward(const ScanSystem& s, float* g, size_t ldg, const float* z, size_t ldz,
                   size_t rows, const float* z_before, float* carry, double* lambda_sum,
                   float* dlambda_re, float* dlambda_im) {
  float* states = const_cast<float*>(z);
  const auto row_of = [&](size_t k) { return s.reverse ? rows - 1 - k : k; };  // k in scan order
  for (size_t end = rows; end > 0;) {
    const size_t begin = end > kRows ? end - kRows : 0, row = row_of(begin);
    const float* before = begin == 0 ? z_before : z + row_of(begin - 1) * ldz;
    const size_t at = row * s.lambda_stride;
    const ScanLambda lambda{s.lambda_re + at, s.lambda_im + at,
                            signed_step(s.lambda_stride, s.reverse)};
    ScanLambdaGradient gradient{lambda_sum, nullptr, nullptr, false};
    if (s.lambda_stride != 0) gradient = {nullptr, dlambda_re + at, dlambda_im + at, false};
    table().scan_adjoint({g + row * ldg, signed_step(ldg, s.reverse)}, end - begin, s.S, lambda,
                         {states + row * ldz, signed_step(ldz, s.reverse)}, before, carry,
                         gradient);
    end = begin;
  }
}

}  // namespace rotrnn::kernels
