#include "rotrnn/kernels/convolve.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "rotrnn/kernels/fft.h"
#include "rotrnn/kernels/simd.h"
#include "rotrnn/kernels/threads.h"

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

/// Channels of a vector.
struct Group {
  size_t begin, width;
};

class Call {
 public:
  Call(int threads, const Sequences& sequences, const ConvolutionKernels& kernels, size_t buffers,
       Arena& scratch)
      : sequences_(sequences),
        kernels_(kernels),
        simd_(table()),
        D_(kernels.D),
        lanes_(simd_.fft_lanes),
        groups_((kernels.D + lanes_ - 1) / lanes_),
        threads_(threads > 0 ? threads : available_threads()) {
    scratch.reset();
    cut(scratch);
    spaces_.resize(static_cast<size_t>(threads_) * buffers);
    buffers_ = buffers;
    for (float*& space : spaces_) space = scratch.take<float>(2 * largest_ * lanes_);
  }

 protected:
  /// f(part, group, buffers) on any thread.
  template <class F>
  void for_items(const F& f) {
    std::atomic<size_t> next{0};
    parallel_for(threads_, [&](int thread) {
      float** buffers = spaces_.data() + static_cast<size_t>(thread) * buffers_;
      for (size_t i; (i = next++) < parts_.size() * groups_;) {
        const size_t begin = i % groups_ * lanes_;
        f(i / groups_, Group{begin, std::min(lanes_, D_ - begin)}, buffers);
      }
    });
  }

  size_t length(ptrdiff_t sequence) const {
    const auto i = static_cast<size_t>(sequence);
    return sequences_.end(i) - sequences_.begin(i);
  }

  size_t row(ptrdiff_t sequence, const Group& group) const {
    return sequences_.begin(static_cast<size_t>(sequence)) * D_ + group.begin;
  }

  /// Rows of both sequences of a pair as points, zeros behind them.
  void load(const float* rows, const Pair& pair, const Class& c, const Group& group,
            float* data) const {
    const auto step = static_cast<ptrdiff_t>(D_);
    for (size_t part = 0; part < 2; ++part) {
      const ptrdiff_t sequence = part == 0 ? pair.first : pair.second;
      const size_t count = sequence < 0 ? 0 : length(sequence);
      float* to = data + part * lanes_;
      if (count > 0) simd_.fft_load(to, rows + row(sequence, group), step, count, group.width, 1);
      clear(to, count, c.plan.n);
    }
  }

  void store(const float* data, const Pair& pair, const Group& group, float* rows, bool add) const {
    for (size_t part = 0; part < 2; ++part) {
      const ptrdiff_t sequence = part == 0 ? pair.first : pair.second;
      if (sequence < 0) continue;
      simd_.fft_store(data + part * lanes_, rows + row(sequence, group), static_cast<ptrdiff_t>(D_),
                      length(sequence), group.width, 1, add);
    }
  }

  /// The spectrum of the kernels, over n: K from the front, K_reverse from the end.
  void load_kernels(const Class& c, const Group& group, float* data) const {
    const auto step = static_cast<ptrdiff_t>(D_);
    const size_t n = c.plan.n, taps = c.longest, point = 2 * lanes_;
    const float scale = 1 / static_cast<float>(n);
    simd_.fft_load(data, kernels_.K + group.begin, step, taps, group.width, scale);
    clear(data, taps, n);
    clear(data + lanes_, 0, n);
    if (kernels_.K_reverse != nullptr && taps > 1) {  // the last taps - 1 points
      const size_t back = taps - 1;
      simd_.fft_load(data + (n - back) * point, kernels_.K_reverse + group.begin + (back - 1) * D_,
                     -step, back, group.width, scale);
    }
    simd_.fft(c.plan, data);
  }

  /// Zeros in one part of the points from `begin` on.
  void clear(float* part, size_t begin, size_t end) const {
    for (size_t t = begin; t < end; ++t) {
      std::fill_n(part + t * 2 * lanes_, lanes_, 0.0f);
    }
  }

  const Sequences& sequences_;
  const ConvolutionKernels& kernels_;
  const Table& simd_;
  const size_t D_, lanes_, groups_;
  const int threads_;
  std::vector<std::vector<Class>> parts_;
  size_t largest_ = 1;  // points

 private:
  /// Sequences, the longest first, in pairs; pairs in parts.
  void cut(Arena& scratch) {
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
    std::vector<FftPlan> plans;
    for (size_t i = 0; i < pairs; ++i) {
      const Pair pair{order[2 * i], 2 * i + 1 < order.size() ? order[2 * i + 1] : -1};
      const size_t longest = length(pair.first), n = fft_size(2 * longest - 1);
      if (plans.empty() || plans.back().n != n) plans.push_back(make_fft_plan(n, scratch));
      largest_ = std::max(largest_, n);
      // Every part has pairs of all lengths, so that all have about the same work.
      std::vector<Class>& classes = parts_[i % parts];
      if (classes.empty() || classes.back().plan.n != n) {
        classes.push_back({plans.back(), longest, {}});
      }
      classes.back().pairs.push_back(pair);
    }
  }

  size_t buffers_ = 0;
  std::vector<float*> spaces_;
};

class Forward : Call {
 public:
  Forward(int threads, const Sequences& sequences, const ConvolutionKernels& kernels,
          Arena& scratch)
      : Call(threads, sequences, kernels, 2, scratch) {}

  void run(const float* u, float* y, bool add) {
    for_items([&](size_t part, const Group& group, float** buffers) {
      float *K = buffers[0], *data = buffers[1];
      for (const Class& c : parts_[part]) {
        load_kernels(c, group, K);
        for (const Pair& pair : c.pairs) {
          load(u, pair, c, group, data);
          simd_.fft(c.plan, data);
          simd_.fft_multiply(data, K, c.plan.n, false);
          simd_.fft_inverse(c.plan, data);
          store(data, pair, group, y, add);
        }
      }
    });
  }
};

class Backward : Call {
 public:
  Backward(int threads, const Sequences& sequences, const ConvolutionKernels& kernels,
           const ConvolutionGradients& gradients, Arena& scratch)
      : Call(threads, sequences, kernels, 4, scratch), gradients_(gradients) {
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
    for_items([&](size_t part, const Group& group, float** buffers) {
      float *K = buffers[0], *g = buffers[1], *x = buffers[2], *sum = buffers[3];
      clear_sums(part, group);
      for (const Class& c : parts_[part]) {
        load_kernels(c, group, K);
        std::fill_n(sum, 2 * lanes_ * c.plan.n, 0.0f);
        for (const Pair& pair : c.pairs) {
          load(dy, pair, c, group, g);
          simd_.fft(c.plan, g);
          if (gradients_.K != nullptr || gradients_.K_reverse != nullptr) {
            load(u, pair, c, group, x);
            simd_.fft(c.plan, x);
            simd_.fft_correlate(sum, g, x, c.plan.n);
          }
          simd_.fft_multiply(g, K, c.plan.n, true);
          simd_.fft_inverse(c.plan, g);
          store(g, pair, group, gradients_.u, gradients_.add);
        }
        simd_.fft_inverse(c.plan, sum);
        add_sums(c, part, group, sum);
      }
    });
    for (const auto& sums : sums_) add_parts(sums);
  }

 private:
  void clear_sums(size_t part, const Group& group) const {
    for (const auto& sums : sums_) {
      if (sums.empty()) continue;
      for (size_t t = 0; t < kernels_.length; ++t) {
        std::fill_n(sums[part] + t * D_ + group.begin, group.width, 0.0f);
      }
    }
  }

  /// Of Σ dy⊙conj(u) of a pair the real part is that of both its sequences.
  void add_sums(const Class& c, size_t part, const Group& group, const float* data) const {
    const auto step = static_cast<ptrdiff_t>(D_);
    const size_t n = c.plan.n, taps = c.longest, point = 2 * lanes_;
    const float scale = 1 / static_cast<float>(n);
    if (!sums_[0].empty()) {
      simd_.fft_store(data, sums_[0][part] + group.begin, step, taps, group.width, scale, true);
    }
    if (!sums_[1].empty() && taps > 1) {
      const size_t back = taps - 1;
      simd_.fft_store(data + (n - back) * point, sums_[1][part] + group.begin + (back - 1) * D_,
                      -step, back, group.width, scale, true);
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

void convolve_forward(int threads, const Sequences& sequences, const ConvolutionKernels& kernels,
                      const float* u, float* y, bool add, Arena& scratch) {
  Forward(threads, sequences, kernels, scratch).run(u, y, add);
}

void convolve_backward(int threads, const Sequences& sequences, const ConvolutionKernels& kernels,
                       const float* u, const float* dy, const ConvolutionGradients& gradients,
                       Arena& scratch) {
  Backward(threads, sequences, kernels, gradients, scratch).run(u, dy);
}

}  // namespace rotrnn::kernels
