#include "rotrnn/kernels/recurrence/products.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {
namespace {

// Rows that go together: a few KB a row, so that the rows before them are still
// in L1.
constexpr size_t kRows = 64;

/// Some rows of one sequence.
struct Stretch {
  size_t first, end;   // of the sequence
  size_t begin, rows;  // of the stretch
};

std::vector<Stretch> stretches_of(const PackedSequences& sequences) {
  std::vector<Stretch> out;
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t first = sequences.begin(i), end = sequences.end(i);
    for (size_t at = first; at < end; at += kRows) {
      out.push_back({first, end, at, std::min(kRows, end - at)});
    }
  }
  return out;
}

/// f(stretch, its number, thread) on any thread.
template <class F>
void for_stretches(int threads, const std::vector<Stretch>& stretches, const F& f) {
  std::atomic<size_t> next{0};
  parallel_for(threads, [&](int thread) {
    for (size_t i; (i = next++) < stretches.size();) {
      f(stretches[i], i, static_cast<size_t>(thread));
    }
  });
}

// ---------------------------------------------------------------- combinations

// binom(w, p) ≥ bound, without overflow.
bool has_combinations(size_t w, size_t p, size_t bound) {
  double count = 1;  // exact as far as it matters: bound is a number of tokens
  for (size_t i = 0; i < p; ++i) {
    count = count * static_cast<double>(w - i) / static_cast<double>(i + 1);
  }
  return count > static_cast<double>(bound) - 0.5;
}

/// Which inputs the products of p inputs of a sequence of T have: rows [T, p], counted from its
/// first token.
struct Places {
  size_t p = 0, window = 0;  // w
  std::vector<uint32_t> rows;

  Places(size_t T, size_t factors) : p(factors), window(factors) {
    while (window < T && !has_combinations(window, p, T)) ++window;
    if (window >= T) refuse_short_sequence(T, p);
    std::vector<size_t> chosen(p);
    for (size_t i = 0; i < p; ++i) chosen[i] = window - p + i;
    rows.reserve(T * p);
    for (size_t t = 0; t < T; ++t) {
      for (size_t i = 0; i < p; ++i) rows.push_back(static_cast<uint32_t>(T - window + chosen[i]));
      // The combination before: the last number that can be smaller is, and those behind it are as
      // large as they can be.
      size_t i = p - 1;
      while (i > 0 && chosen[i] == chosen[i - 1] + 1) --i;
      --chosen[i];
      for (size_t k = i + 1; k < p; ++k) chosen[k] = window - p + k;
    }
  }
};

/// Those of all orders, for every length that there is.
class PlacesOfLengths {
 public:
  PlacesOfLengths(const PackedSequences& sequences, size_t orders) {
    for (size_t i = 0; i < sequences.count; ++i) {
      const size_t T = sequences.end(i) - sequences.begin(i);
      if (T == 0) continue;
      std::vector<Places>& places = of_[T];
      for (size_t p = places.size() + 2; p <= orders + 1; ++p) {
        places.emplace_back(T, p);
        widest_ = std::max(widest_, places.back().window);
      }
    }
  }

  const std::vector<Places>& of(size_t T) const { return of_.at(T); }
  size_t widest() const { return widest_; }

 private:
  std::map<size_t, std::vector<Places>> of_;
  size_t widest_ = 0;
};

constexpr size_t kBlock = 64;  // channels that go together

/// Some channels of a sequence of T tokens; rows are `stride` numbers apart.
struct PlacesBlock {
  size_t T, stride, width;
};
struct PlacesInputs {
  const float *c, *u, *dy;
};
/// `window` has room for a row of kBlock for each input that has products.
struct PlacesGradients {
  double* window;
  float* du;
  double* dc;
};

// The gradient of each factor is that of y times all others; they meet in the last inputs of the
// sequence, and are added to du at the end. dc gets the sums of dy times all factors.
void places_backward(const Places& places, const PlacesBlock& b, const PlacesInputs& in,
                     const PlacesGradients& out) {
  const size_t begin = b.T - places.window;
  std::fill_n(out.window, places.window * kBlock, 0.0);
  for (size_t t = 0; t < b.T; ++t) {
    const uint32_t* rows = places.rows.data() + t * places.p;
    for (size_t j = 0; j <= places.p; ++j) {  // all but the j-th; then all
      float product[kBlock];
      std::copy_n(in.dy + t * b.stride, b.width, product);
      for (size_t i = 0; i < places.p; ++i) {
        if (i == j) continue;
        const float* factor = in.u + rows[i] * b.stride;
        for (size_t k = 0; k < b.width; ++k) product[k] *= factor[k];
      }
      double* to = j < places.p ? out.window + (rows[j] - begin) * kBlock : out.dc;
      for (size_t k = 0; k < b.width; ++k) to[k] += static_cast<double>(product[k]);
    }
  }
  for (size_t t = 0; t < places.window; ++t) {
    float* to = out.du + (begin + t) * b.stride;
    for (size_t k = 0; k < b.width; ++k) {
      to[k] += static_cast<float>(out.window[t * kBlock + k] * static_cast<double>(in.c[k]));
    }
  }
}

}  // namespace

void refuse_short_sequence(size_t tokens, size_t factors) {
  throw std::invalid_argument(
      "Liquid-S4: a sequence of " + std::to_string(tokens) +
      " tokens is too short for products of " + std::to_string(factors) +
      " inputs in mode \"reference\"; use mode = \"causal\", a smaller degree, or longer "
      "sequences");
}

void products_forward(int threads, const PackedSequences& sequences, size_t D, size_t orders,
                      const float* c, const float* u, float* y) {
  threads = threads > 0 ? threads : available_threads();
  std::vector<float> products(static_cast<size_t>(threads) * D);
  for_stretches(threads, stretches_of(sequences), [&](const Stretch& s, size_t, size_t thread) {
    float* product = products.data() + thread * D;
    for (size_t t = s.begin; t < s.begin + s.rows; ++t) {
      const size_t most = std::min(orders, t - s.first);  // later ones meet the zeros
      std::copy_n(u + t * D, D, product);
      for (size_t p = 1; p <= most; ++p) {
        const float *before = u + (t - p) * D, *scale = c + (p - 1) * D;
        float* out = y + t * D;
        for (size_t d = 0; d < D; ++d) {
          product[d] *= before[d];
          out[d] += scale[d] * product[d];
        }
      }
    }
  });
}

void products_backward(int threads, const PackedSequences& sequences, size_t D, size_t orders,
                       const float* c, const float* u, const float* dy, float* du, float* dc,
                       Arena& scratch) {
  threads = threads > 0 ? threads : available_threads();
  scratch.reset();
  const std::vector<Stretch> stretches = stretches_of(sequences);
  const size_t size = orders * D;
  auto* sums = scratch.take<double>(dc != nullptr ? stretches.size() * size : 0);
  auto* rows = scratch.take<float>(static_cast<size_t>(threads) * (D + size));
  for_stretches(threads, stretches, [&](const Stretch& s, size_t number, size_t thread) {
    float *product = rows + thread * (D + size), *sum = product + D;
    std::fill_n(sum, size, 0.0f);
    for (size_t t = s.begin; t < s.begin + s.rows; ++t) {
      const size_t most = std::min(orders, t - s.first);
      std::copy_n(u + t * D, D, product);
      for (size_t p = 1; p <= most && dc != nullptr; ++p) {
        const float *before = u + (t - p) * D, *gradient = dy + t * D;
        float* to = sum + (p - 1) * D;
        for (size_t d = 0; d < D; ++d) {
          product[d] *= before[d];
          to[d] += gradient[d] * product[d];
        }
      }
      // u_t is the j-th of the inputs of the product at t + j: the others,
      // times what it has.
      for (size_t p = 1; p <= orders; ++p) {
        for (size_t j = 0; j <= p; ++j) {
          const size_t at = t + j;
          if (at >= s.end || at < s.first + p) continue;
          const float *scale = c + (p - 1) * D, *gradient = dy + at * D;
          for (size_t d = 0; d < D; ++d) product[d] = scale[d] * gradient[d];
          for (size_t i = 0; i <= p; ++i) {
            if (i == j) continue;
            const float* other = u + (at - i) * D;
            for (size_t d = 0; d < D; ++d) product[d] *= other[d];
          }
          float* to = du + t * D;
          for (size_t d = 0; d < D; ++d) to[d] += product[d];
        }
      }
    }
    if (dc != nullptr) std::copy_n(sum, size, sums + number * size);
  });
  if (dc == nullptr) return;
  for (size_t i = 0; i < size; ++i) {
    double total = 0;
    for (size_t s = 0; s < stretches.size(); ++s) total += sums[s * size + i];
    dc[i] = static_cast<float>(total);
  }
}

void reference_products_forward(int threads, const PackedSequences& sequences, size_t D,
                                size_t orders, const float* c, const float* u, float* y) {
  threads = threads > 0 ? threads : available_threads();
  const PlacesOfLengths lengths(sequences, orders);
  std::vector<float> products(static_cast<size_t>(threads) * D);
  for_stretches(threads, stretches_of(sequences), [&](const Stretch& s, size_t, size_t thread) {
    float* product = products.data() + thread * D;
    for (const Places& places : lengths.of(s.end - s.first)) {
      const float* scale = c + (places.p - 2) * D;
      for (size_t t = s.begin; t < s.begin + s.rows; ++t) {
        const uint32_t* rows = places.rows.data() + (t - s.first) * places.p;
        std::copy_n(scale, D, product);
        for (size_t i = 0; i < places.p; ++i) {
          const float* factor = u + (s.first + rows[i]) * D;
          for (size_t d = 0; d < D; ++d) product[d] *= factor[d];
        }
        for (size_t d = 0; d < D; ++d) y[t * D + d] += product[d];
      }
    }
  });
}

void reference_products_backward(int threads, const PackedSequences& sequences, size_t D,
                                 size_t orders, const float* c, const float* u, const float* dy,
                                 float* du, float* dc, Arena& scratch) {
  threads = threads > 0 ? threads : available_threads();
  scratch.reset();
  const PlacesOfLengths lengths(sequences, orders);
  const size_t size = orders * D, blocks = (D + kBlock - 1) / kBlock;
  auto* sums = scratch.take<double>(sequences.count * size);
  std::fill_n(sums, sequences.count * size, 0.0);
  const size_t inputs = lengths.widest() * kBlock;  // of a block in the window
  auto* windows = scratch.take<double>(static_cast<size_t>(threads) * inputs);
  std::atomic<size_t> next{0};
  parallel_for(threads, [&](int thread) {
    double* window = windows + static_cast<size_t>(thread) * inputs;
    for (size_t item; (item = next++) < sequences.count * blocks;) {
      const size_t i = item / blocks, d = item % blocks * kBlock;
      const size_t begin = sequences.begin(i), T = sequences.end(i) - begin;
      if (T == 0) continue;
      const PlacesBlock block{T, D, std::min(kBlock, D - d)};
      const size_t first = begin * D + d;
      for (const Places& places : lengths.of(T)) {
        const size_t row = (places.p - 2) * D + d;
        places_backward(places, block, {c + row, u + first, dy + first},
                        {window, du + first, sums + i * size + row});
      }
    }
  });
  if (dc == nullptr) return;
  for (size_t i = 0; i < size; ++i) {
    double total = 0;
    for (size_t s = 0; s < sequences.count; ++s) total += sums[s * size + i];
    dc[i] = static_cast<float>(total);
  }
}

}  // namespace rotrnn::kernels
