#include "rotrnn/kernels/frontend/rotations.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"
#include "rotrnn/spec/frontend.h"

namespace rotrnn::kernels {
namespace {

float* zeros(Arena& memory, size_t count) {
  auto* out = memory.take<float>(count);
  std::fill_n(out, count, 0.0f);
  return out;
}

// Calls body(thread, sequence); who gets which sequence does not matter to the bits.
template <class F>
void for_sequences(size_t count, int threads, const F& body) {
  std::atomic<size_t> next{0};
  const int many = std::clamp(threads, 1, static_cast<int>(std::max<size_t>(count, 1)));
  parallel_for(many, [&](int t) {
    for (size_t i = next++; i < count; i = next++) body(static_cast<size_t>(t), i);
  });
}

}  // namespace

RotationBank::RotationBank(const RotationParameters& p, Arena& memory)
    : channels_(p.channels),
      bands_(p.bands),
      hop_(p.hop),
      padded_((p.bands + kBands - 1) / kBands * kBands),
      plane_(p.channels * padded_) {
  float *re = zeros(memory, padded_), *im = zeros(memory, padded_), *xi2 = zeros(memory, padded_);
  float *mean = zeros(memory, plane_), *inverse = zeros(memory, plane_);
  auto *theta = memory.take<double>(bands_), *gamma_log = memory.take<double>(bands_);
  for (size_t k = 0; k < bands_; ++k) {
    theta[k] = static_cast<double>(p.theta[k]);
    gamma_log[k] = static_cast<double>(p.gamma_log[k]);
    const double decay = std::exp(gamma_log[k]), gamma = std::exp(-decay);
    re[k] = static_cast<float>(gamma * std::cos(theta[k]));
    im[k] = static_cast<float>(gamma * std::sin(theta[k]));
    xi2[k] = static_cast<float>(-std::expm1(-2 * decay));
  }
  for (size_t c = 0; c < channels_; ++c) {
    for (size_t k = 0; k < bands_; ++k) {
      const size_t from = c * bands_ + k, to = c * padded_ + k;
      mean[to] = p.mean == nullptr ? 0 : p.mean[from];
      inverse[to] = p.deviation == nullptr ? 1 : 1 / p.deviation[from];
    }
  }
  lambda_re_ = re, lambda_im_ = im, xi2_ = xi2;
  mean_ = mean, inverse_ = inverse;
  theta_ = theta, gamma_log_ = gamma_log;
}

void RotationBank::write(const float* planes, size_t count, float* out) const {
  const float share = 1.0f / static_cast<float>(count);
  for (size_t c = 0; c < channels_; ++c) {
    table().rotation_token(planes + 2 * plane_ + c * padded_, xi2_, share,
                           static_cast<float>(kPowerFloor), mean_ + c * padded_,
                           inverse_ + c * padded_, out + c * bands_, bands_);
  }
}

size_t RotationBank::run(const float* x, size_t count, RotationState& state, float* out) const {
  size_t tokens = 0;
  while (count > 0) {
    const size_t rows = std::min(count, hop_ - state.count);
    table().rotate({rows, channels_, padded_, lambda_re_, lambda_im_, x}, state.planes, nullptr);
    x += rows * channels_;
    count -= rows;
    state.count += rows;
    if (state.count < hop_) break;
    write(state.planes, hop_, out + tokens++ * outputs());
    std::fill_n(state.planes + 2 * plane_, plane_, 0.0f);
    state.count = 0;
  }
  return tokens;
}

void RotationBank::partial(const RotationState& state, float* out) const {
  write(state.planes, std::max<size_t>(state.count, 1), out);
}

void rotations_forward(const RotationBank& bank, const PackedSequences& sequences,
                       const int64_t* tokens, const float* x, float* out, float* kept,
                       int threads) {
  const auto many = static_cast<size_t>(std::max(threads, 1));
  std::vector<AlignedFloats> planes(many, AlignedFloats(bank.state_size()));
  for_sequences(sequences.count, threads, [&](size_t t, size_t i) {
    RotationState state{planes[t].data(), 0};
    std::fill(planes[t].begin(), planes[t].end(), 0.0f);
    const size_t begin = sequences.begin(i), length = sequences.end(i) - begin;
    if (length == 0) return;
    const float* from = x + begin * bank.channels();
    const auto first = static_cast<size_t>(tokens[i]), last = static_cast<size_t>(tokens[i + 1]);
    for (size_t j = first; j < last; ++j, from += bank.hop() * bank.channels()) {
      if (kept != nullptr) {
        std::copy_n(state.planes, bank.kept_size(), kept + j * bank.kept_size());
      }
      float* to = out + j * bank.outputs();
      if (bank.run(from, std::min(bank.hop(), length), state, to) == 0) bank.partial(state, to);
    }
  });
}

/// One pass back; a friend of the bank.
class RotationBackward {
 public:
  RotationBackward(const RotationBank& bank, const PackedSequences& sequences,
                   const int64_t* tokens, const float* x, const float* kept, const float* dtokens,
                   float* dx)
      : bank_(bank),
        sequences_(sequences),
        tokens_(tokens),
        x_(x),
        kept_(kept),
        dtokens_(dtokens),
        dx_(dx) {}

  // Floats of scratch of a thread, and doubles of the sums of a sequence: ∂L/∂λ, then Σ g·p.
  size_t scratch() const { return (2 * bank_.hop() + 6) * bank_.plane_; }
  size_t sums() const { return 3 * bank_.plane_; }

  void sequence(size_t i, float* scratch, double* sums) const {
    const size_t plane = bank_.plane_, C = bank_.channels_;
    const size_t begin = sequences_.begin(i), length = sequences_.end(i) - begin;
    std::fill_n(sums, this->sums(), 0.0);
    if (dx_ != nullptr) std::fill_n(dx_ + begin * C, length * C, 0.0f);
    if (length == 0) return;
    float *state = scratch, *carry = state + 3 * plane, *g = carry + 2 * plane, *w = g + plane;
    std::fill_n(carry, 2 * plane, 0.0f);
    const auto first = static_cast<size_t>(tokens_[i]), last = static_cast<size_t>(tokens_[i + 1]);
    const size_t rows = std::min(bank_.hop_, length);
    for (size_t j = last; j-- > first;) {
      const float* before = kept_ + j * 2 * plane;
      std::copy_n(before, 2 * plane, state);
      std::fill_n(state + 2 * plane, plane, 0.0f);
      const size_t at = (begin + (j - first) * bank_.hop_) * C;
      const RotationTile tile{rows, C, bank_.padded_, bank_.lambda_re_, bank_.lambda_im_, x_ + at};
      table().rotate(tile, state, w);
      slopes(dtokens_ + j * bank_.outputs(), state + 2 * plane, rows, g, sums + 2 * plane);
      table().rotate_adjoint(tile, w, before, g, carry, sums, dx_ == nullptr ? nullptr : dx_ + at);
    }
  }

  // From sums [3 planes] to the gradients of θ and γ: ∂L/∂θ = Re(conj(q)·iλ), ∂L/∂γ =
  // Re(conj(q)·e^{iθ}) - 2γ·∂L/∂ξ², and γ = exp(-e^s) has dγ/ds = -γ·e^s.
  void finish(const double* sums, const RotationGradients& out) const {
    const size_t plane = bank_.plane_;
    for (size_t k = 0; k < bank_.bands_; ++k) {
      double re = 0, im = 0, power = 0;
      for (size_t c = 0; c < bank_.channels_; ++c) {
        const double* at = sums + c * bank_.padded_ + k;
        re += at[0], im += at[plane], power += at[2 * plane];
      }
      const double theta = bank_.theta_[k], decay = std::exp(bank_.gamma_log_[k]);
      const double gamma = std::exp(-decay), xi2 = -std::expm1(-2 * decay);
      const double cosine = std::cos(theta), sine = std::sin(theta);
      out.theta[k] = gamma * (im * cosine - re * sine);
      const double dgamma = re * cosine + im * sine - 2 * gamma * power / xi2;
      out.gamma_log[k] = -dgamma * gamma * decay;
    }
  }

 private:
  // 2·∂L/∂p·ξ²/n of a token, 0 where bands fill up; adds ∂L/∂p·p to `power`.
  void slopes(const float* dtoken, const float* sum, size_t rows, float* g, double* power) const {
    const float share = 1.0f / static_cast<float>(rows);
    for (size_t c = 0; c < bank_.channels_; ++c) {
      for (size_t k = 0; k < bank_.padded_; ++k) {
        const size_t at = c * bank_.padded_ + k;
        if (k >= bank_.bands_) {
          g[at] = 0;
          continue;
        }
        const float scale = bank_.xi2_[k] * share, p = sum[at] * scale;
        const float dp = dtoken[c * bank_.bands_ + k] * bank_.inverse_[at] /
                         (p + static_cast<float>(kPowerFloor));
        g[at] = 2 * dp * scale;
        power[at] += static_cast<double>(dp) * static_cast<double>(p);
      }
    }
  }

  const RotationBank& bank_;
  const PackedSequences& sequences_;
  const int64_t* tokens_;
  const float *x_, *kept_, *dtokens_;
  float* dx_;
};

void rotations_backward(const RotationBank& bank, const PackedSequences& sequences,
                        const int64_t* tokens, const float* x, const float* kept,
                        const float* dtokens, const RotationGradients& gradients, int threads,
                        Arena& scratch) {
  scratch.reset();
  const RotationBackward pass(bank, sequences, tokens, x, kept, dtokens, gradients.x);
  const auto many = static_cast<size_t>(std::max(threads, 1));
  auto* work = scratch.take<float>(many * pass.scratch());
  auto* sums = scratch.take<double>(std::max<size_t>(sequences.count, 1) * pass.sums());
  if (sequences.count == 0) std::fill_n(sums, pass.sums(), 0.0);
  for_sequences(sequences.count, threads, [&](size_t t, size_t i) {
    pass.sequence(i, work + t * pass.scratch(), sums + i * pass.sums());
  });
  for (size_t i = 1; i < sequences.count; ++i) {  // in their order, whichever thread made them
    for (size_t k = 0; k < pass.sums(); ++k) sums[k] += sums[i * pass.sums() + k];
  }
  pass.finish(sums, gradients);
}

}  // namespace rotrnn::kernels
