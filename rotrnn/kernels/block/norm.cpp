#include "rotrnn/kernels/block/norm.h"

#include <algorithm>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

constexpr size_t kRows = 128;

/// Runs f(part, begin, rows) over a fixed number of parts of at most n rows, so that sums kept per
/// part do not depend on the number of threads.
constexpr size_t kParts = 16;
template <class F>
void for_parts(size_t n, int threads, const F& f) {
  parallel_for(threads, [&](int t) {
    for (size_t p = static_cast<size_t>(t); p < kParts; p += static_cast<size_t>(threads)) {
      const size_t begin = n * p / kParts, end = n * (p + 1) / kParts;
      for (size_t at = begin; at < end; at += kRows) f(p, at, std::min(kRows, end - at));
    }
  });
}

}  // namespace

void batch_statistics(const float* x, size_t n, size_t D, double* statistics, int threads) {
  std::vector<double> parts(kParts * 2 * D, 0.0);
  std::vector<float> tiles(kParts * 3 * D);
  for_parts(n, threads, [&](size_t p, size_t at, size_t rows) {
    float* tile = tiles.data() + p * 3 * D;
    double* sums = parts.data() + p * 2 * D;
    table().column_statistics(x + at * D, D, rows, D, {tile, tile + D, tile + 2 * D});
    for (size_t i = 0; i < D; ++i) {
      const double shift = tile[i], sum = tile[D + i], count = static_cast<double>(rows);
      sums[i] += sum + count * shift;
      sums[D + i] += tile[2 * D + i] + shift * (2 * sum + count * shift);
    }
  });
  std::fill_n(statistics, 1 + 2 * D, 0.0);
  statistics[0] = static_cast<double>(n);
  for (size_t i = 0; i < parts.size(); ++i) statistics[1 + i % (2 * D)] += parts[i];
}

void affine_forward(const float* x, const float* a, const float* c, float* out, size_t n, size_t D,
                    int threads) {
  for_parts(n, threads, [&](size_t, size_t at, size_t rows) {
    table().affine(x + at * D, D, a, c, out + at * D, D, rows, D);
  });
}

void layer_norm_forward(const float* x, const float* weight, const float* bias, float eps,
                        float* out, size_t n, size_t D, int threads) {
  for_parts(n, threads, [&](size_t, size_t at, size_t rows) {
    table().layer_norm(x + at * D, D, weight, bias, eps, out + at * D, D, rows, D);
  });
}

void layer_norm_backward(const float* x, const float* weight, float eps, const float* dout,
                         float* dx, float* dweight, float* dbias, size_t n, size_t D, int threads) {
  std::vector<double> parts(kParts * 2 * D, 0.0);
  std::vector<float> sums(kParts * 2 * D);
  for_parts(n, threads, [&](size_t p, size_t at, size_t rows) {
    float* rows_dx = dx + at * D;  // takes dout, is worked on in place
    float* sum = sums.data() + p * 2 * D;
    std::copy_n(dout + at * D, rows * D, rows_dx);
    std::fill_n(sum, 2 * D, 0.0f);
    table().layer_norm_backward(rows_dx, D, nullptr, 0, nullptr, x + at * D, D, weight, eps,
                                nullptr, 0, rows_dx, D, sum, sum + D, rows, D);
    for (size_t i = 0; i < 2 * D; ++i) parts[p * 2 * D + i] += static_cast<double>(sum[i]);
  });
  for (size_t i = 0; i < D; ++i) {
    double bias = 0, scale = 0;
    for (size_t p = 0; p < kParts; ++p) {
      bias += parts[p * 2 * D + i];
      scale += parts[p * 2 * D + D + i];
    }
    dbias[i] = static_cast<float>(bias);
    dweight[i] = static_cast<float>(scale);
  }
}

}  // namespace rotrnn::kernels
