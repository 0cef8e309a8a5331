#include "rotrnn/kernels/recurrence/channel_step.h"

#include <algorithm>
#include <cstring>

#include "rotrnn/kernels/block/step.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

/// Rows of a group out of rows of D floats; zero beyond its width.
void load_rows(const float* from, size_t ld, size_t rows, size_t width, float* to) {
  for (size_t t = 0; t < rows; ++t, from += ld, to += kChannels) {
    if (width < kChannels) std::memset(to, 0, kChannels * sizeof(float));
    std::memcpy(to, from, width * sizeof(float));
  }
}

void store_rows(const float* from, size_t rows, size_t width, float* to, size_t ld) {
  for (size_t t = 0; t < rows; ++t, from += kChannels, to += ld) {
    std::memcpy(to, from, width * sizeof(float));
  }
}

}  // namespace

ChannelStepper::ChannelStepper(const ChannelStepLayer& p, Arena& memory)
    : simd_(&table()),
      D_(static_cast<size_t>(p.width)),
      N_(static_cast<size_t>(p.states)),
      orders_(p.liquid == nullptr ? 0 : static_cast<size_t>(p.orders)),
      inside_(p.liquid_inside),
      lambda_(pack(p.lambda_re, p.lambda_im, memory)),
      c_(pack(p.c_re, p.c_im, memory)) {
  if (p.c_reverse_re != nullptr) c_reverse_ = pack(p.c_reverse_re, p.c_reverse_im, memory);
  const bool ranked = p.p_re != nullptr;
  if (ranked || p.b_re != nullptr) {
    // What is absent is 0, but b is 1.
    p_ = pack(p.p_re, p.p_im, memory);
    q_ = pack(p.q_re, p.q_im, memory);
    auto* b = const_cast<float*>(pack(p.b_re, p.b_im, memory));
    if (p.b_re == nullptr) {
      for (size_t i = 0; i < groups() * N_; ++i)
        std::fill_n(b + 2 * i * kChannels, kChannels, 1.0f);
    }
    b_ = b;
  }
  if (orders_ == 0) return;
  auto* products = memory.take<float>(groups() * orders_ * kChannels);
  for (size_t g = 0; g < groups(); ++g) {
    load_rows(p.liquid + g * kChannels, D_, orders_, width(g), products + g * orders_ * kChannels);
  }
  products_ = products;
}

size_t ChannelStepper::groups() const {
  return (D_ + kChannels - 1) / kChannels;
}

size_t ChannelStepper::group_state() const {
  return (2 * N_ + orders_) * kChannels;
}

double ChannelStepper::state_square(const float* state) const {
  double sum = 0;
  for (size_t g = 0; g < groups(); ++g, state += group_state()) {
    for (size_t n = 0; n < 2 * N_; ++n) {
      for (size_t d = 0; d < width(g); ++d) {
        const double x = state[n * kChannels + d];
        sum += x * x;
      }
    }
  }
  return sum;
}

size_t ChannelStepper::width(size_t group) const {
  return std::min(kChannels, D_ - group * kChannels);
}

size_t ChannelStepper::scratch(size_t rows) const {
  return 3 * rows * kChannels;  // u, w and y of a group
}

const float* ChannelStepper::pack(const float* re, const float* im, Arena& memory) const {
  const size_t size = groups() * N_ * 2 * kChannels;
  auto* planes = memory.take<float>(size);
  std::fill_n(planes, size, 0.0f);
  for (size_t d = 0; d < D_ && re != nullptr; ++d) {
    float* to = planes + d / kChannels * N_ * 2 * kChannels + d % kChannels;
    for (size_t n = 0; n < N_; ++n, to += 2 * kChannels) {
      to[0] = re[d * N_ + n];
      to[kChannels] = im[d * N_ + n];
    }
  }
  return planes;
}

void ChannelStepper::scan(size_t group, size_t rows, bool reverse, const float* u, float* y,
                          float* state) const {
  const size_t at = group * N_ * 2 * kChannels;
  const ChannelTile tile{
      rows, width(group), N_, reverse, reverse, u, lambda_ + at, (reverse ? c_reverse_ : c_) + at};
  if (p_ == nullptr) {
    simd_->channel_scan(tile, y, state);
  } else {
    simd_->channel_rank_scan(tile, {p_ + at, q_ + at, b_ + at}, y, state);
  }
}

/// to += Σ_i product_i ⊙ Π_{j≤i} u_{t-j}, with the inputs before the first row in `line`.
void ChannelStepper::add_products(size_t group, const float* u, size_t rows, const float* line,
                                  float* to) const {
  const float* scale = products_ + group * orders_ * kChannels;
  for (size_t t = 0; t < rows; ++t) {
    float product[kChannels], sum[kChannels] = {};
    std::memcpy(product, u + t * kChannels, sizeof product);
    for (size_t i = 0; i < orders_; ++i) {
      // The input i + 1 steps before.
      const float* late = i < t ? u + (t - i - 1) * kChannels : line + (i - t) * kChannels;
      for (size_t k = 0; k < kChannels; ++k) {
        product[k] *= late[k];
        sum[k] += scale[i * kChannels + k] * product[k];
      }
    }
    for (size_t k = 0; k < kChannels; ++k) to[t * kChannels + k] += sum[k];
  }
}

/// y = the states' part and the products' of a tile u; the state goes on.
void ChannelStepper::forward(size_t group, const float* u, size_t rows, float* y, float* state,
                             float* scratch) const {
  const float* w = u;
  std::fill_n(y, rows * kChannels, 0.0f);
  float* const line = state + 2 * N_ * kChannels;
  if (orders_ > 0) {
    if (inside_) std::copy_n(u, rows * kChannels, scratch);
    add_products(group, u, rows, line, inside_ ? scratch : y);
    if (inside_) w = scratch;
  }
  scan(group, rows, false, w, y, state);
  const size_t kept = orders_ - std::min(orders_, rows);  // inputs that stay, later in the line
  std::memmove(line + (orders_ - kept) * kChannels, line, kept * kChannels * sizeof(float));
  for (size_t i = 0; i + kept < orders_; ++i) {
    std::copy_n(u + (rows - 1 - i) * kChannels, kChannels, line + i * kChannels);
  }
}

void ChannelStepper::run(const float* u, size_t rows, const StepState* states, size_t state_count,
                         float* y, float* scratch) const {
  float *const tile = scratch, *const out = tile + rows * kChannels;
  float* const more = out + rows * kChannels;
  for (size_t g = 0; g < groups(); ++g) {
    const size_t from = g * kChannels, size = group_state();
    load_rows(u + from, D_, rows, width(g), tile);
    if (state_count == 1) {
      forward(g, tile, rows, out, states[0].state + g * size, more);
    } else {
      for (size_t i = 0; i < rows; ++i) {
        forward(g, tile + i * kChannels, 1, out + i * kChannels, states[i].state + g * size, more);
      }
    }
    store_rows(out, rows, width(g), y + from, D_);
  }
}

void ChannelStepper::sequence(size_t group, const float* u, size_t rows, size_t tile, float* y,
                              float* scratch) const {
  float *const in = scratch, *const out = in + tile * kChannels;
  float *const more = out + tile * kChannels, *const state = more + tile * kChannels;
  const size_t from = group * kChannels, columns = width(group);
  std::fill_n(state, group_state(), 0.0f);
  for (size_t t = 0; t < rows; t += tile) {
    const size_t count = std::min(tile, rows - t), at = t * D_ + from;
    load_rows(u + at, D_, count, columns, in);
    forward(group, in, count, out, state, more);
    store_rows(out, count, columns, y + at, D_);
  }
  if (!bidirectional()) return;
  std::fill_n(state, group_state(), 0.0f);
  for (size_t end = rows; end > 0;) {
    const size_t count = (end - 1) % tile + 1, at = (end - count) * D_ + from;
    load_rows(u + at, D_, count, columns, in);
    load_rows(y + at, D_, count, columns, out);
    scan(group, count, true, in, out, state);
    store_rows(out, count, columns, y + at, D_);
    end -= count;
  }
}

}  // namespace rotrnn::kernels
