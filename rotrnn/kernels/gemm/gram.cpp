#include "rotrnn/kernels/gemm/gram.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/gemm/gemm.h"

namespace rotrnn::kernels {
namespace {

constexpr size_t kTile = 96;        // rows and columns of a piece of the result
constexpr size_t kStretch = 512;    // products that are summed in float
constexpr size_t kFeatures = 2048;  // columns of X that are packed at a time

/// Calls f(i, j, tile) for the tiles of the upper triangle of [n, n], on all threads.
template <class F>
void for_tiles(size_t n, int threads, const F& f) {
  const size_t tiles = (n + kTile - 1) / kTile;
  std::atomic<size_t> next{0};
  parallel_for(threads, [&](int) {
    AlignedFloats tile(kTile * kTile);
    for (size_t i; (i = next++) < tiles;) {
      for (size_t j = i; j < tiles; ++j) f(i * kTile, j * kTile, tile.data());
    }
  });
}

void add_tile(const float* tile, size_t rows, size_t columns, double* out, size_t ld) {
  for (size_t y = 0; y < rows; ++y) {
    for (size_t x = 0; x < columns; ++x)
      out[y * ld + x] += static_cast<double>(tile[y * kTile + x]);
  }
}

}  // namespace

void gram_of_rows(const float* x, size_t n, size_t F, double* out, int threads) {
  const Gemm& g = gemm();
  const size_t tiles = (n + kTile - 1) / kTile;
  std::fill_n(out, n * n, 0.0);
  for (size_t begin = 0; begin < F; begin += kFeatures) {
    const size_t width = std::min(kFeatures, F - begin);
    // Xᵀ by blocks of rows and stretches: a right factor for each.
    const size_t stretches = (width + kStretch - 1) / kStretch;
    const size_t size = g.packed_size(kStretch, kTile);
    AlignedFloats packed(tiles * stretches * size);
    std::atomic<size_t> next{0};
    parallel_for(threads, [&](int) {
      for (size_t i; (i = next++) < tiles * stretches;) {
        const size_t row = i / stretches * kTile, at = begin + i % stretches * kStretch;
        g.pack(packed.data() + i * size, x + row * F + at, std::min(kStretch, begin + width - at),
               std::min(kTile, n - row), 1, F);
      }
    });
    for_tiles(n, threads, [&](size_t i, size_t j, float* tile) {
      const size_t rows = std::min(kTile, n - i), columns = std::min(kTile, n - j);
      for (size_t s = 0; s < stretches; ++s) {
        const size_t at = begin + s * kStretch;
        g.multiply(tile, kTile, x + i * F + at, F,
                   packed.data() + (j / kTile * stretches + s) * size, rows,
                   std::min(kStretch, begin + width - at), columns, false);
        add_tile(tile, rows, columns, out + i * n + j, n);
      }
    });
  }
}

void add_gram_of_columns(const float* x, size_t n, size_t F, double* out, int threads) {
  const Gemm& g = gemm();
  // `outer` reads rows far apart: a copy by blocks of columns, side by side, spares the TLB.
  const size_t tiles = (F + kTile - 1) / kTile, ld = padded_stride(kTile);
  for (size_t begin = 0; begin < n; begin += kStretch) {
    const size_t depth = std::min(kStretch, n - begin);
    AlignedFloats blocks(tiles * depth * ld);
    std::atomic<size_t> next{0};
    parallel_for(threads, [&](int) {
      for (size_t i; (i = next++) < tiles;) {
        float* to = blocks.data() + i * depth * ld;
        for (size_t t = 0; t < depth; ++t) {
          std::copy_n(x + (begin + t) * F + i * kTile, std::min(kTile, F - i * kTile), to + t * ld);
        }
      }
    });
    for_tiles(F, threads, [&](size_t i, size_t j, float* tile) {
      const size_t rows = std::min(kTile, F - i), columns = std::min(kTile, F - j);
      g.outer(tile, kTile, blocks.data() + i / kTile * depth * ld, ld,
              blocks.data() + j / kTile * depth * ld, ld, rows, depth, columns, false);
      add_tile(tile, rows, columns, out + i * F + j, F);
    });
  }
}

}  // namespace rotrnn::kernels
