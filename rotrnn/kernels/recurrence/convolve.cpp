#include "rotrnn/kernels/recurrence/convolve.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/recurrence/fft.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

// Pieces of work (channels, part of the batch) wished for, whatever the number of threads: each
// part transforms the kernels again.
constexpr size_t kItems = 16;

/// Two sequences that go together, the first not the shorter one; second < 0: alone.
struct Pair {
  ptrdiff_t first, second;
};

/// Pairs of a part with one size of FFT.
struct Class {
  FftPlan plan;
  size_t longest;  // tokens
  std::vector<Pair> pairs;
};

// Vectors of channels that are loaded and stored together: a whole cache line of a row with AVX2.
constexpr size_t kSides = 2;

/// Channels of a few vectors.
struct ConvolutionGroup {
  size_t begin, width;
};

class ConvolutionCall {
 public:
  ConvolutionCall(int threads, const PackedSequences& sequences, const ConvolutionKernels& kernels,
                  size_t buffers, Arena& scratch)
      : sequences_(sequences),
        kernels_(kernels),
        simd_(table()),
        D_(kernels.D),
        lanes_(simd_.fft_lanes),
        groups_((kernels.D + kSides * lanes_ - 1) / (kSides * lanes_)),
        threads_(threads > 0 ? threads : available_threads()) {
    scratch.reset();
    cut();
    spaces_.resize(static_cast<size_t>(threads_) * buffers);
    buffers_ = buffers;
    for (float*& space : spaces_) space = scratch.take<float>(kSides * side());
  }

 protected:
  /// f(part, group, buffers) on any thread.
  template <class F>
  void for_items(const F& f) {
    std::atomic<size_t> next{0};
    parallel_for(threads_, [&](int thread) {
      float** buffers = spaces_.data() + static_cast<size_t>(thread) * buffers_;
      for (size_t i; (i = next++) < parts_.size() * groups_;) {
        const size_t begin = i % groups_ * kSides * lanes_;
        f(i / groups_, ConvolutionGroup{begin, std::min(kSides * lanes_, D_ - begin)}, buffers);
      }
    });
  }

  size_t length(ptrdiff_t sequence) const {
    const auto i = static_cast<size_t>(sequence);
    return sequences_.end(i) - sequences_.begin(i);
  }

  size_t row(ptrdiff_t sequence, const ConvolutionGroup& group) const {
    return sequences_.begin(static_cast<size_t>(sequence)) * D_ + group.begin;
  }

  /// Floats from the points of one vector of channels to those of the next.
  size_t side() const { return 2 * largest_ * lanes_; }

  /// f(offset of its points) for every vector of a group.
  template <class F>
  void for_sides(const ConvolutionGroup& group, const F& f) const {
    for (size_t i = 0; i * lanes_ < group.width; ++i) f(i * side());
  }

  FftRows rows(size_t count, const ConvolutionGroup& group, bool backwards) const {
    const auto step = static_cast<ptrdiff_t>(D_);
    return {count, group.width, backwards ? -step : step, side()};
  }

  /// Rows of both sequences of a pair as points; as many as the first has.
  void load(const float* from, const Pair& pair, const ConvolutionGroup& group, float* data) const {
    const size_t live = length(pair.first), other = pair.second < 0 ? 0 : length(pair.second);
    simd_.fft_load(rows(live, group, false), from + row(pair.first, group), data, 1);
    if (other > 0) {
      simd_.fft_load(rows(other, group, false), from + row(pair.second, group), data + lanes_, 1);
    }
    clear(data + lanes_, other, live, group);
  }

  void store(const float* data, const Pair& pair, const ConvolutionGroup& group, float* to,
             bool add) const {
    for (size_t part = 0; part < 2; ++part) {
      const ptrdiff_t sequence = part == 0 ? pair.first : pair.second;
      if (sequence < 0) continue;
      simd_.fft_store(rows(length(sequence), group, false), data + part * lanes_,
                      to + row(sequence, group), 1, add);
    }
  }

  /// The spectrum of the kernels, over n: K from the front, K_reverse from the end.
  void load_kernels(const Class& c, const ConvolutionGroup& group, float* data) const {
    const size_t n = c.plan.n, taps = c.longest, back = back_taps(c);
    const float scale = 1 / static_cast<float>(n);
    simd_.fft_load(rows(taps, group, false), kernels_.K + group.begin, data, scale);
    const size_t live = back > 0 ? n : taps;
    clear(data, taps, live, group);
    clear(data + lanes_, 0, live, group);
    if (back > 0) {
      simd_.fft_load(rows(back, group, true), kernels_.K_reverse + group.begin + (back - 1) * D_,
                     data + (n - back) * 2 * lanes_, scale);
    }
    for_sides(group, [&](size_t at) { simd_.fft(c.plan, data + at, live); });
  }

  /// Points of K_reverse: the last tap of it would meet nothing.
  size_t back_taps(const Class& c) const {
    return kernels_.K_reverse != nullptr ? c.longest - 1 : 0;
  }

  /// Zeros in one part of some points.
  void clear(float* part, size_t begin, size_t end, const ConvolutionGroup& group) const {
    for_sides(group, [&](size_t at) {
      for (size_t t = begin; t < end; ++t) std::fill_n(part + at + t * 2 * lanes_, lanes_, 0.0f);
    });
  }

  const PackedSequences& sequences_;
  const ConvolutionKernels& kernels_;
  const Table& simd_;
  const size_t D_, lanes_, groups_;
  const int threads_;
  std::vector<std::vector<Class>> parts_;
  size_t largest_ = 1;  // points

 private:
  /// PackedSequences, the longest first, in pairs; pairs in parts.
  void cut() {
    std::vector<ptrdiff_t> order;
    for (size_t i = 0; i < sequences_.count; ++i) {
      if (sequences_.end(i) > sequences_.begin(i)) order.push_back(static_cast<ptrdiff_t>(i));
    }
    std::stable_sort(order.begin(), order.end(),
                     [this](ptrdiff_t a, ptrdiff_t b) { return length(a) > length(b); });
    const size_t pairs = (order.size() + 1) / 2;
    if (pairs == 0 || groups_ == 0) return;
    const size_t parts = std::clamp<size_t>(kItems / groups_, 1, pairs);
    parts_.resize(parts);
    for (size_t i = 0; i < pairs; ++i) {
      const Pair pair{order[2 * i], 2 * i + 1 < order.size() ? order[2 * i + 1] : -1};
      const size_t longest = length(pair.first), n = fft_size(2 * longest - 1);
      largest_ = std::max(largest_, n);
      // Every part has pairs of all lengths, so that all have about the same work.
      std::vector<Class>& classes = parts_[i % parts];
      if (classes.empty() || classes.back().plan.n != n) {
        classes.push_back({fft_plan(n), longest, {}});
      }
      classes.back().pairs.push_back(pair);
    }
  }

  size_t buffers_ = 0;
  std::vector<float*> spaces_;
};

class ConvolutionForward : ConvolutionCall {
 public:
  ConvolutionForward(int threads, const PackedSequences& sequences,
                     const ConvolutionKernels& kernels, Arena& scratch)
      : ConvolutionCall(threads, sequences, kernels, 2, scratch) {}

  void run(const float* u, float* y, bool add) {
    for_items([&](size_t part, const ConvolutionGroup& group, float** buffers) {
      float *K = buffers[0], *data = buffers[1];
      for (const Class& c : parts_[part]) {
        load_kernels(c, group, K);
        for (const Pair& pair : c.pairs) {
          load(u, pair, group, data);
          for_sides(group, [&](size_t at) {
            simd_.fft_convolve(c.plan, data + at, K + at, length(pair.first));
          });
          store(data, pair, group, y, add);
        }
      }
    });
  }
};

class ConvolutionBackward : ConvolutionCall {
 public:
  ConvolutionBackward(int threads, const PackedSequences& sequences,
                      const ConvolutionKernels& kernels, const ConvolutionGradients& gradients,
                      Arena& scratch)
      : ConvolutionCall(threads, sequences, kernels, 4, scratch), gradients_(gradients) {
    for (size_t d = 0; d < 2; ++d) {
      float* to = d == 0 ? gradients.K : gradients.K_reverse;
      if (to == nullptr) continue;
      sums_[d].push_back(to);
      for (size_t i = 1; i < parts_.size(); ++i) {
        sums_[d].push_back(scratch.take<float>(kernels.length * kernels.D));
      }
    }
  }

  void run(const float* u, const float* dy) {
    for (const auto& sums : sums_) {
      if (parts_.empty() && !sums.empty()) {
        std::fill_n(sums[0], kernels_.length * D_, 0.0f);
      }
    }
    for_items([&](size_t part, const ConvolutionGroup& group, float** buffers) {
      float *K = buffers[0], *g = buffers[1], *x = buffers[2], *sum = buffers[3];
      clear_sums(part, group);
      for (const Class& c : parts_[part]) {
        load_kernels(c, group, K);
        for_sides(group, [&](size_t at) { std::fill_n(sum + at, 2 * lanes_ * c.plan.n, 0.0f); });
        for (const Pair& pair : c.pairs) {
          load(dy, pair, group, g);
          load(u, pair, group, x);
          for_sides(group, [&](size_t at) {
            simd_.fft_convolve_adjoint(c.plan, g + at, x + at, K + at, sum + at,
                                       length(pair.first));
          });
          store(g, pair, group, gradients_.u, gradients_.add);
        }
        for_sides(group, [&](size_t at) { simd_.fft_inverse(c.plan, sum + at); });
        add_sums(c, part, group, sum);
      }
    });
    for (const auto& sums : sums_) add_parts(sums);
  }

 private:
  void clear_sums(size_t part, const ConvolutionGroup& group) const {
    for (const auto& sums : sums_) {
      if (sums.empty()) continue;
      for (size_t t = 0; t < kernels_.length; ++t) {
        std::fill_n(sums[part] + t * D_ + group.begin, group.width, 0.0f);
      }
    }
  }

  /// Of Σ dy⊙conj(u) of a pair the real part is that of both its sequences.
  void add_sums(const Class& c, size_t part, const ConvolutionGroup& group,
                const float* data) const {
    const size_t n = c.plan.n, back = back_taps(c);
    const float scale = 1 / static_cast<float>(n);
    if (!sums_[0].empty()) {
      simd_.fft_store(rows(c.longest, group, false), data, sums_[0][part] + group.begin, scale,
                      true);
    }
    if (!sums_[1].empty() && back > 0) {
      simd_.fft_store(rows(back, group, true), data + (n - back) * 2 * lanes_,
                      sums_[1][part] + group.begin + (back - 1) * D_, scale, true);
    }
  }

  void add_parts(const std::vector<float*>& sums) const {
    for (size_t i = 1; i < sums.size(); ++i) {
      simd_.axpy(sums[0], sums[i], 1.0f, kernels_.length * D_);
    }
  }

  const ConvolutionGradients& gradients_;
  std::vector<float*> sums_[2];  // of K and K_reverse, one for each part; the first is the result
};

}  // namespace

void convolve_forward(int threads, const PackedSequences& sequences,
                      const ConvolutionKernels& kernels, const float* u, float* y, bool add,
                      Arena& scratch) {
  ConvolutionForward(threads, sequences, kernels, scratch).run(u, y, add);
}

void convolve_backward(int threads, const PackedSequences& sequences,
                       const ConvolutionKernels& kernels, const float* u, const float* dy,
                       const ConvolutionGradients& gradients, Arena& scratch) {
  ConvolutionBackward(threads, sequences, kernels, gradients, scratch).run(u, dy);
}

}  // namespace rotrnn::kernels
