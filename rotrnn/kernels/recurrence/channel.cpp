#include "rotrnn/kernels/recurrence/channel.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

// Rows of a tile: u, dy and du of a group take 12 KB of L1, and products are summed in float over
// so many rows before they join the others in double.
constexpr size_t kTile = 64;
constexpr size_t kTileSize = kTile * kChannels;

// Groups of channels are loaded and stored together, for one alone would take a single cache line
// of a row at a time; as many as half of L2 holds, up to 1 KB of a row.
constexpr size_t kSpanBytes = size_t{1} << 18;
constexpr size_t kMostGroups = 16;

// Pieces of work (sequences, group) wished for, whatever the number of threads: each of them has
// its own sums.
constexpr size_t kItems = 128;

/// kChannels channels, or the last ones.
struct ChannelGroup {
  size_t index, begin, width;
};

/// A few groups, and the channels in them.
struct Span {
  size_t first, count;
  size_t begin, width;
};

/// A group's parameters: planes [N, 2, kChannels], zero beyond its width.
struct GroupParameters {
  float *lambda, *c, *c_reverse, *D;
};

/// A group's gradient sums [N, 4, kChannels] (u·h, u·p) per direction and of the final states'
/// part.
struct GroupSums {
  double *forward, *reverse, *final, *D;
};

/// What a thread works with: a tile and states for each group of a span.
struct ChannelWorkspace {
  float *u, *y, *dy, *state, *final_state;
};

/// Rows of `width` floats into tiles of kChannels, one per group; zero beyond the width.
void load_rows(const float* from, size_t ld, size_t rows, size_t width, float* tiles) {
  const size_t whole = width / kChannels, rest = width % kChannels;
  for (size_t t = 0; t < rows; ++t) {
    const float* row = from + t * ld;
    float* to = tiles + t * kChannels;
    for (size_t g = 0; g < whole; ++g, row += kChannels, to += kTileSize) {
      std::memcpy(to, row, kChannels * sizeof(float));
    }
    if (rest == 0) continue;
    std::memset(to, 0, kChannels * sizeof(float));
    std::memcpy(to, row, rest * sizeof(float));
  }
}

void store_rows(const float* tiles, size_t rows, size_t width, float* to, size_t ld) {
  const size_t whole = width / kChannels, rest = width % kChannels;
  for (size_t t = 0; t < rows; ++t) {
    const float* from = tiles + t * kChannels;
    float* row = to + t * ld;
    for (size_t g = 0; g < whole; ++g, row += kChannels, from += kTileSize) {
      std::memcpy(row, from, kChannels * sizeof(float));
    }
    if (rest > 0) std::memcpy(row, from, rest * sizeof(float));
  }
}

/// to = D⊙x, for one tile.
void scale_rows(const float* x, const float* D, size_t rows, float* to) {
  for (size_t t = 0; t < rows; ++t) {
    for (size_t i = 0; i < kChannels; ++i) {
      to[t * kChannels + i] = D[i] * x[t * kChannels + i];
    }
  }
}

void add_products(const float* a, const float* b, size_t rows, double* sums) {
  float tile[kChannels] = {};
  for (size_t t = 0; t < rows; ++t) {
    for (size_t i = 0; i < kChannels; ++i) tile[i] += a[t * kChannels + i] * b[t * kChannels + i];
  }
  for (size_t i = 0; i < kChannels; ++i) sums[i] += static_cast<double>(tile[i]);
}

struct Complex {
  double re, im;
};

Complex conjugate_product(Complex a, Complex b) {  // conj(a)·b
  return {a.re * b.re + a.im * b.im, a.re * b.im - a.im * b.re};
}

/// What both passes share: the parameters by groups, and who does what.
class ChannelCall {
 public:
  ChannelCall(const ChannelConfig& config, const PackedSequences& sequences,
              const ChannelLayer& layer, const ChannelInput& input, bool backward, Arena& scratch)
      : sequences_(sequences),
        layer_(layer),
        input_(input),
        simd_(table()),
        D_(static_cast<size_t>(layer.width)),
        N_(static_cast<size_t>(layer.states)),
        plane_(N_ * kChannels),
        groups_((D_ + kChannels - 1) / kChannels),
        bidirectional_(layer.c_reverse_re != nullptr),
        threads_(config.threads > 0 ? config.threads : available_threads()) {
    scratch.reset();
    if (groups_ == 0) return;
    parts_ = std::clamp<size_t>(kItems / groups_, 1, std::max<size_t>(sequences.count, 1));
    part_begin_ = scratch.take<size_t>(parts_ + 1);
    cut_parts();
    parameters_ = scratch.take<GroupParameters>(groups_);
    for (size_t g = 0; g < groups_; ++g) {
      parameters_[g].lambda = scratch.take<float>(2 * plane_);
      parameters_[g].c = scratch.take<float>(2 * plane_);
      parameters_[g].c_reverse = bidirectional_ ? scratch.take<float>(2 * plane_) : nullptr;
      parameters_[g].D = scratch.take<float>(kChannels);
    }
    const size_t threads = static_cast<size_t>(threads_);
    // Per group: tiles, and in planes parameters, states and (two floats each) sums.
    const size_t bytes =
        sizeof(float) * ((backward ? 3 : 2) * kTileSize + (backward ? 4 + 4 + 8 : 4 + 2) * plane_);
    const size_t most = std::clamp<size_t>(kSpanBytes / bytes, 1, kMostGroups);
    span_ = std::clamp<size_t>(parts_ * groups_ / (4 * threads), 1, most);
    spaces_ = scratch.take<ChannelWorkspace>(threads);
    for (size_t t = 0; t < threads; ++t) {
      ChannelWorkspace& w = spaces_[t];
      for (float** tiles : {&w.u, &w.y, &w.dy}) *tiles = scratch.take<float>(span_ * kTileSize);
      for (float** states : {&w.state, &w.final_state}) {
        *states = scratch.take<float>(span_ * 4 * plane_);
      }
    }
    for_groups([this](const ChannelGroup& group) { pack(group); });
  }

 protected:
  /// f(group) on any thread.
  template <class F>
  void for_groups(const F& f) {
    next_ = 0;
    parallel_for(threads_, [&](int) {
      for (size_t g; (g = next_++) < groups_;) f(group(g));
    });
  }

  /// f(part, span, workspace) on any thread: a part is some sequences, in order.
  template <class F>
  void for_items(const F& f) {
    const size_t spans = (groups_ + span_ - 1) / span_;
    next_ = 0;
    parallel_for(threads_, [&](int thread) {
      for (size_t i; (i = next_++) < parts_ * spans;) {
        f(i / spans, span(i % spans), spaces_[thread]);
      }
    });
  }

  /// f(group, k) for the groups of a span, the k-th of it.
  template <class F>
  void for_span(const Span& span, const F& f) const {
    for (size_t k = 0; k < span.count; ++k) f(group(span.first + k), k);
  }

  /// f(first row, rows) for the tiles of a sequence.
  template <class F>
  void for_tiles(size_t sequence, bool backwards, const F& f) const {
    const size_t begin = sequences_.begin(sequence), end = sequences_.end(sequence);
    const size_t tiles = (end - begin + kTile - 1) / kTile;
    for (size_t k = 0; k < tiles; ++k) {
      const size_t at = begin + (backwards ? tiles - 1 - k : k) * kTile;
      f(at, std::min(kTile, end - at));
    }
  }

  ChannelGroup group(size_t index) const {
    const size_t begin = index * kChannels;
    return {index, begin, std::min(kChannels, D_ - begin)};
  }

  Span span(size_t index) const {
    const size_t first = index * span_, count = std::min(span_, groups_ - first);
    const size_t begin = first * kChannels;
    return {first, count, begin, std::min(count * kChannels, D_ - begin)};
  }

  /// A plane [N, D], the group's part of it, into every `stride`-th row of kChannels.
  void load_plane(const float* from, const ChannelGroup& group, float* to, size_t stride) const {
    for (size_t n = 0; n < N_; ++n) {
      load_rows(from + n * D_ + group.begin, D_, 1, group.width, to + n * stride * kChannels);
    }
  }

  /// The states of a sequence among `states`, as planes of every `stride`-th row.
  void load_states(const float* states, size_t sequence, const ChannelGroup& group, float* to,
                   size_t stride) const {
    const float* from = states + sequence * 2 * N_ * D_;
    load_plane(from, group, to, stride);
    load_plane(from + N_ * D_, group, to + kChannels, stride);
  }

  const PackedSequences& sequences_;
  const ChannelLayer& layer_;
  const ChannelInput& input_;
  const Table& simd_;
  const size_t D_, N_, plane_, groups_;
  const bool bidirectional_;
  const int threads_;
  size_t parts_ = 0, span_ = 1;
  size_t* part_begin_ = nullptr;
  GroupParameters* parameters_ = nullptr;
  ChannelWorkspace* spaces_ = nullptr;
  std::atomic<size_t> next_{0};

 private:
  /// Equal stretches of tokens, cut between sequences.
  void cut_parts() {
    const size_t n = sequences_.tokens();
    size_t i = 0;
    for (size_t part = 0; part < parts_; ++part) {
      while (i < sequences_.count && sequences_.begin(i) * parts_ < part * n) ++i;
      part_begin_[part] = i;
    }
    part_begin_[0] = 0;
    part_begin_[parts_] = sequences_.count;
  }

  void pack(const ChannelGroup& group) const {
    const GroupParameters& p = parameters_[group.index];
    load_plane(layer_.lambda_re, group, p.lambda, 2);
    load_plane(layer_.lambda_im, group, p.lambda + kChannels, 2);
    load_plane(layer_.c_re, group, p.c, 2);
    load_plane(layer_.c_im, group, p.c + kChannels, 2);
    if (bidirectional_) {
      load_plane(layer_.c_reverse_re, group, p.c_reverse, 2);
      load_plane(layer_.c_reverse_im, group, p.c_reverse + kChannels, 2);
    }
    std::memset(p.D, 0, kChannels * sizeof(float));
    if (layer_.D != nullptr) load_rows(layer_.D + group.begin, D_, 1, group.width, p.D);
  }
};

class ChannelForward : ChannelCall {
 public:
  ChannelForward(const ChannelConfig& config, const PackedSequences& sequences,
                 const ChannelLayer& layer, const ChannelInput& input, const ChannelOutput& output,
                 Arena& scratch)
      : ChannelCall(config, sequences, layer, input, false, scratch), output_(output) {}

  void run() {
    for_items([this](size_t part, const Span& span, const ChannelWorkspace& w) {
      for (size_t i = part_begin_[part]; i < part_begin_[part + 1]; ++i) {
        run_forward(i, span, w);
        if (bidirectional_) run_reverse(i, span, w);
      }
    });
  }

 private:
  void run_forward(size_t sequence, const Span& span, const ChannelWorkspace& w) const {
    std::fill(w.state, w.state + span.count * 2 * plane_, 0.0f);
    if (input_.initial != nullptr) {
      for_span(span, [&](const ChannelGroup& group, size_t k) {
        load_states(input_.initial, sequence, group, w.state + k * 2 * plane_, 2);
      });
    }
    for_tiles(sequence, false, [&](size_t at, size_t rows) {
      load_rows(input_.u + at * D_ + span.begin, D_, rows, span.width, w.u);
      for_span(span, [&](const ChannelGroup& group, size_t k) {
        const GroupParameters& p = parameters_[group.index];
        float *u = w.u + k * kTileSize, *y = w.y + k * kTileSize;
        scale_rows(u, p.D, rows, y);
        simd_.channel_scan({rows, group.width, N_, false, false, u, p.lambda, p.c}, y,
                           w.state + k * 2 * plane_);
      });
      store_rows(w.y, rows, span.width, output_.y + at * D_ + span.begin, D_);
    });
    if (output_.final == nullptr) return;
    for_span(span, [&](const ChannelGroup& group, size_t k) {
      float* to = output_.final + sequence * 2 * N_ * D_ + group.begin;
      for (size_t n = 0; n < N_; ++n) {
        const float* x = w.state + k * 2 * plane_ + n * 2 * kChannels;
        std::memcpy(to + n * D_, x, group.width * sizeof(float));
        std::memcpy(to + (N_ + n) * D_, x + kChannels, group.width * sizeof(float));
      }
    });
  }

  void run_reverse(size_t sequence, const Span& span, const ChannelWorkspace& w) const {
    std::fill(w.state, w.state + span.count * 2 * plane_, 0.0f);
    for_tiles(sequence, true, [&](size_t at, size_t rows) {
      const size_t from = at * D_ + span.begin;
      load_rows(input_.u + from, D_, rows, span.width, w.u);
      load_rows(output_.y + from, D_, rows, span.width, w.y);
      for_span(span, [&](const ChannelGroup& group, size_t k) {
        const GroupParameters& p = parameters_[group.index];
        simd_.channel_scan(
            {rows, group.width, N_, true, true, w.u + k * kTileSize, p.lambda, p.c_reverse},
            w.y + k * kTileSize, w.state + k * 2 * plane_);
      });
      store_rows(w.y, rows, span.width, output_.y + from, D_);
    });
  }

  const ChannelOutput& output_;
};

class ChannelBackward : ChannelCall {
 public:
  ChannelBackward(const ChannelConfig& config, const PackedSequences& sequences,
                  const ChannelLayer& layer, const ChannelInput& input,
                  const ChannelOutputGradient& gradient, const ChannelGradients& gradients,
                  Arena& scratch)
      : ChannelCall(config, sequences, layer, input, true, scratch),
        gradient_(gradient),
        gradients_(gradients) {
    const size_t count = parts_ * groups_, size = 4 * plane_;
    sums_ = scratch.take<GroupSums>(count);
    for (size_t i = 0; i < count; ++i) {
      sums_[i].forward = scratch.take<double>(size);
      sums_[i].reverse = bidirectional_ ? scratch.take<double>(size) : nullptr;
      sums_[i].final = gradient.final != nullptr ? scratch.take<double>(size) : nullptr;
      sums_[i].D = scratch.take<double>(kChannels);
    }
    if (gradient.final == nullptr) return;
    // The part of the final states is a walk with dy = 0 and c = 1.
    zero_ = scratch.take<float>(kTileSize);
    one_ = scratch.take<float>(2 * plane_);
    std::fill(zero_, zero_ + kTileSize, 0.0f);
    for (size_t i = 0; i < 2 * plane_; ++i) one_[i] = i / kChannels % 2 == 0 ? 1.0f : 0.0f;
  }

  void run() {
    for_items([this](size_t part, const Span& span, const ChannelWorkspace& w) {
      GroupSums* sums = sums_ + part * groups_ + span.first;
      for (size_t k = 0; k < span.count; ++k) clear(sums[k]);
      for (size_t i = part_begin_[part]; i < part_begin_[part + 1]; ++i) {
        run_forward(i, span, w, sums);
        if (bidirectional_) run_reverse(i, span, w, sums);
      }
    });
    for_groups([this](const ChannelGroup& group) { finish(group); });
  }

 private:
  void clear(const GroupSums& sums) const {
    for (double* sum : {sums.forward, sums.reverse, sums.final}) {
      if (sum != nullptr) std::fill(sum, sum + 4 * plane_, 0.0);
    }
    std::fill(sums.D, sums.D + kChannels, 0.0);
  }

  /// The adjoint of x: from the last token to the first.
  void run_forward(size_t sequence, const Span& span, const ChannelWorkspace& w,
                   const GroupSums* sums) const {
    const bool final = gradient_.final != nullptr;
    const size_t size = 4 * plane_;
    std::fill(w.state, w.state + span.count * size, 0.0f);
    if (final) {
      std::fill(w.final_state, w.final_state + span.count * size, 0.0f);
      for_span(span, [&](const ChannelGroup& group, size_t k) {
        load_states(gradient_.final, sequence, group, w.final_state + k * size, 4);
      });
    }
    for_tiles(sequence, true, [&](size_t at, size_t rows) {
      const size_t from = at * D_ + span.begin;
      load_rows(input_.u + from, D_, rows, span.width, w.u);
      load_rows(gradient_.y + from, D_, rows, span.width, w.dy);
      for_span(span, [&](const ChannelGroup& group, size_t k) {
        const GroupParameters& p = parameters_[group.index];
        float *u = w.u + k * kTileSize, *dy = w.dy + k * kTileSize, *du = w.y + k * kTileSize;
        scale_rows(dy, p.D, rows, du);
        add_products(u, dy, rows, sums[k].D);
        simd_.channel_adjoint({rows, group.width, N_, true, false, u, p.lambda, p.c}, dy, du,
                              w.state + k * size, sums[k].forward);
        if (!final) return;
        simd_.channel_adjoint({rows, group.width, N_, true, true, u, p.lambda, one_}, zero_, du,
                              w.final_state + k * size, sums[k].final);
      });
      store_rows(w.y, rows, span.width, gradients_.u + from, D_);
    });
    if (input_.initial == nullptr && gradients_.initial == nullptr) return;
    for_span(span, [&](const ChannelGroup& group, size_t k) {
      finish_initial(sequence, group, w.state + k * size, w.final_state + k * size, sums[k]);
    });
  }

  /// The adjoint of x←: from the first token to the last, which reads x← after its own time.
  void run_reverse(size_t sequence, const Span& span, const ChannelWorkspace& w,
                   const GroupSums* sums) const {
    std::fill(w.state, w.state + span.count * 4 * plane_, 0.0f);
    for_tiles(sequence, false, [&](size_t at, size_t rows) {
      const size_t from = at * D_ + span.begin;
      load_rows(input_.u + from, D_, rows, span.width, w.u);
      load_rows(gradient_.y + from, D_, rows, span.width, w.dy);
      load_rows(gradients_.u + from, D_, rows, span.width, w.y);
      for_span(span, [&](const ChannelGroup& group, size_t k) {
        const GroupParameters& p = parameters_[group.index];
        simd_.channel_adjoint(
            {rows, group.width, N_, false, true, w.u + k * kTileSize, p.lambda, p.c_reverse},
            w.dy + k * kTileSize, w.y + k * kTileSize, w.state + k * 4 * plane_, sums[k].reverse);
      });
      store_rows(w.y, rows, span.width, gradients_.u + from, D_);
    });
  }

  /// One step beyond the first token: x_0 takes the part of a sum that u takes later.
  void finish_initial(size_t sequence, const ChannelGroup& group, const float* state,
                      const float* final_state, const GroupSums& sums) const {
    const GroupParameters& p = parameters_[group.index];
    const size_t base = sequence * 2 * N_ * D_ + group.begin;
    for (size_t n = 0; n < N_; ++n) {
      for (size_t i = 0; i < group.width; ++i) {
        const size_t two = n * 2 * kChannels + i, four = n * 4 * kChannels + i;
        const size_t re = base + n * D_ + i, im = re + N_ * D_;
        const Complex lambda = complex(p.lambda, two), c = complex(p.c, two);
        const Complex h = complex(state, four), q = complex(state, four + 2 * kChannels);
        const Complex h0 = conjugate_product(lambda, h);
        const Complex step = conjugate_product(lambda, q), p0{step.re + h.re, step.im + h.im};
        Complex gradient = conjugate_product(c, h0);
        const bool final = gradient_.final != nullptr;
        if (final) {  // this walk has already made the step
          gradient.re += complex(final_state, four).re;
          gradient.im += complex(final_state, four).im;
        }
        if (gradients_.initial != nullptr) {
          gradients_.initial[re] = static_cast<float>(gradient.re);
          gradients_.initial[im] = static_cast<float>(gradient.im);
        }
        if (input_.initial == nullptr) continue;
        const Complex x0{input_.initial[re], input_.initial[im]};
        add(sums.forward, four, conjugate_product(x0, h0));
        add(sums.forward, four + 2 * kChannels, conjugate_product(x0, p0));
        if (!final) continue;
        add(sums.final, four + 2 * kChannels,
            conjugate_product(x0, complex(final_state, four + 2 * kChannels)));
      }
    }
  }

  /// Sums over parts, in order, become gradients.
  void finish(const ChannelGroup& group) const {
    const GroupParameters& p = parameters_[group.index];
    for (size_t n = 0; n < N_; ++n) {
      for (size_t i = 0; i < group.width; ++i) {
        const size_t two = n * 2 * kChannels + i, four = n * 4 * kChannels + i;
        const size_t to = n * D_ + group.begin + i, up = four + 2 * kChannels;
        Complex c_sum = total(group, &GroupSums::forward, four);
        Complex lambda_sum =
            conjugate_product(complex(p.c, two), total(group, &GroupSums::forward, up));
        set(gradients_.layer.c_re, gradients_.layer.c_im, to, c_sum);
        if (bidirectional_) {
          c_sum = total(group, &GroupSums::reverse, four);
          set(gradients_.layer.c_reverse_re, gradients_.layer.c_reverse_im, to, c_sum);
          const Complex more =
              conjugate_product(complex(p.c_reverse, two), total(group, &GroupSums::reverse, up));
          lambda_sum = {lambda_sum.re + more.re, lambda_sum.im + more.im};
        }
        if (gradient_.final != nullptr) {
          const Complex more = total(group, &GroupSums::final, up);
          lambda_sum = {lambda_sum.re + more.re, lambda_sum.im + more.im};
        }
        set(gradients_.layer.lambda_re, gradients_.layer.lambda_im, to, lambda_sum);
      }
    }
    for (size_t i = 0; i < group.width && gradients_.layer.D != nullptr; ++i) {
      double sum = 0;
      for (size_t part = 0; part < parts_; ++part) {
        sum += sums_[part * groups_ + group.index].D[i];
      }
      gradients_.layer.D[group.begin + i] = static_cast<float>(sum);
    }
  }

  Complex total(const ChannelGroup& group, double* GroupSums::*which, size_t at) const {
    Complex sum{0, 0};
    for (size_t part = 0; part < parts_; ++part) {
      const double* values = sums_[part * groups_ + group.index].*which;
      sum.re += values[at];
      sum.im += values[at + kChannels];
    }
    return sum;
  }

  static Complex complex(const float* planes, size_t at) {
    return {planes[at], planes[at + kChannels]};
  }

  static void add(double* planes, size_t at, Complex value) {
    planes[at] += value.re;
    planes[at + kChannels] += value.im;
  }

  static void set(float* re, float* im, size_t at, Complex value) {
    if (re != nullptr) re[at] = static_cast<float>(value.re);
    if (im != nullptr) im[at] = static_cast<float>(value.im);
  }

  const ChannelOutputGradient& gradient_;
  const ChannelGradients& gradients_;
  GroupSums* sums_ = nullptr;
  float *zero_ = nullptr, *one_ = nullptr;
};

}  // namespace

void channel_forward(const ChannelConfig& config, const PackedSequences& sequences,
                     const ChannelLayer& layer, const ChannelInput& input,
                     const ChannelOutput& output, Arena& scratch) {
  ChannelForward(config, sequences, layer, input, output, scratch).run();
}

void channel_backward(const ChannelConfig& config, const PackedSequences& sequences,
                      const ChannelLayer& layer, const ChannelInput& input,
                      const ChannelOutputGradient& gradient, const ChannelGradients& gradients,
                      Arena& scratch) {
  ChannelBackward(config, sequences, layer, input, gradient, gradients, scratch).run();
}

}  // namespace rotrnn::kernels
