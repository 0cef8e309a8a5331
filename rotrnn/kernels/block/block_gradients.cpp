#include <algorithm>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/block/block_backward.h"

namespace rotrnn::kernels {
namespace {

/// Batch norm over the batch: dx_norm = a(du - Σdu/n - x̂·Σ(du⊙x̂)/n), whose last two terms are
/// q⊙x + s with the sums of all processes.
struct Pending {
  std::vector<float> q, s;
};

Pending pending_terms(const std::vector<double>& sums, const BlockSaved& saved, size_t D) {
  Pending p{std::vector<float>(D), std::vector<float>(D)};
  for (size_t i = 0; i < D; ++i) {
    const double scale = saved.count > 0 ? saved.norm_a[i] / saved.count : 0.0;
    const double rstd = saved.norm_rstd[i], mean = saved.mean[i];
    p.q[i] = static_cast<float>(-scale * rstd * sums[D + i]);
    p.s[i] = static_cast<float>(-scale * sums[i] + scale * rstd * mean * sums[D + i]);
  }
  return p;
}

}  // namespace

/// Postnorm batch norm: its sums over all tokens come before anything else.
void BlockBackward::postnorm_sums() {
  post_q_.assign(D, 0.0f);
  post_s_.assign(D, 0.0f);
  for_units([&](size_t unit, ThreadBuffers& b) {
    StageClock clock(clock_times(b));
    std::fill_n(b.sums, 2 * D, 0.0f);
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        View g = {const_cast<float*>(gradient_.value) + t.begin * D, D};
        if (gradient_.q != nullptr) {
          simd.finish(g.data, D, nullptr, gradient_.out + t.begin * D, D, gradient_.q, gradient_.s,
                      b.dout.data, b.dout.ld, t.rows, D);
          g = b.dout;
        }
        simd.batch_norm_backward(g.data, g.ld, nullptr, 0, nullptr, saved.raw + t.begin * D, D,
                                 saved.norm_mean, saved.norm_rstd, saved.norm_a, nullptr, 0,
                                 b.dy.data, b.dy.ld, b.sums, b.sums + D, t.rows, D);
        flush(b.sums, sums_[unit].norm_sum, D);
        flush(b.sums + D, sums_[unit].norm_product, D);
      });
    }
    clock.mark(Stage::norm);
  });
}

/// Without tokens the final state is the initial one, and so are their gradients.
void BlockBackward::empty_sequences() {
  const float* final[2] = {gradient_.final, gradient_.final_reverse};
  float* initial[2] = {gradients_.initial, gradients_.initial_reverse};
  for (size_t i = 0; i < sequences.count; ++i) {
    if (sequences.begin(i) != sequences.end(i)) continue;
    for (size_t d = 0; d < directions(); ++d) {
      if (initial[d] == nullptr) continue;
      std::fill_n(initial[d] + i * S2, S2, 0.0f);
      if (final[d] != nullptr) std::copy_n(final[d] + i * S2, S2, initial[d] + i * S2);
    }
  }
}

/// Weight gradients: units in order, threads over elements.
void BlockBackward::sum_weights() {
  struct Sum {
    float* to;
    size_t offset, count;
    int kind;  // 0: W, 1: V, 2: V_reverse, 3: glu
  };
  const bool f = full();
  const Sum all[] = {{gradients_.layer.W, 0, S2 * D, 0},
                     {gradients_.layer.V, 0, D * S2, 1},
                     {config.bidirectional ? gradients_.layer.V_reverse : nullptr, 0, D * S2, 2},
                     {f ? gradients_.value_weight : nullptr, 0, D * D, 3},
                     {glu() ? gradients_.gate_weight : nullptr, f ? D * D : 0, D * D, 3}};
  parallel_for(threads, [&](int thread) {
    for (const Sum& sum : all) {
      if (sum.to == nullptr) continue;
      const auto index = static_cast<size_t>(thread), many = static_cast<size_t>(threads);
      const size_t begin = sum.count * index / many, end = sum.count * (index + 1) / many;
      bool first = true;
      for (const UnitSums& unit : sums_) {
        if (!unit.wrote_input) continue;
        const float* sources[] = {unit.W, unit.V[0], unit.V[1], unit.glu};
        const float* from = sources[sum.kind] + sum.offset;
        if (first) {
          std::copy(from + begin, from + end, sum.to + begin);
        } else {
          simd.axpy(sum.to + begin, from + begin, 1.0f, end - begin);
        }
        first = false;
      }
      if (first) std::fill(sum.to + begin, sum.to + end, 0.0f);
    }
  });
}

double BlockBackward::total(double* UnitSums::*member, size_t i) const {
  double sum = 0;
  for (const UnitSums& unit : sums_) sum += (unit.*member)[i];
  return sum;
}

void BlockBackward::sum_vectors() {
  const auto store = [&](float* to, double* UnitSums::*member, size_t offset, size_t count) {
    if (to == nullptr) return;
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(total(member, offset + i));
  };
  store(gradients_.layer.D, &UnitSums::D, 0, D);
  store(gradients_.layer.e, &UnitSums::e, 0, D);
  store(gradients_.layer.b, &UnitSums::b, 0, S2);
  store(gradients_.layer.start_re, &UnitSums::start, 0, S);
  store(gradients_.layer.start_im, &UnitSums::start, S, S);
  if (parameters.layer.lambda_stride == 0) {
    store(gradients_.layer.lambda_re, &UnitSums::lambda, 0, S);
    store(gradients_.layer.lambda_im, &UnitSums::lambda, S, S);
  }
  if (full()) store(gradients_.value_bias, &UnitSums::glu_bias, 0, D);
  if (glu()) store(gradients_.gate_bias, &UnitSums::glu_bias, full() ? D : 0, D);
  store(gradients_.norm_bias, &UnitSums::norm_sum, 0, D);
  store(gradients_.norm_weight, &UnitSums::norm_product, 0, D);
}

void BlockBackward::finish_norm() {
  std::vector<double> sums(2 * D);
  for (size_t i = 0; i < D; ++i) {
    sums[i] = total(&UnitSums::norm_sum, i);
    sums[D + i] = total(&UnitSums::norm_product, i);
  }
  if (config.reduce) config.reduce(sums.data(), sums.size());
  const Pending pending = pending_terms(sums, saved, D);
  if (!config.prenorm) {
    post_q_ = pending.q;
    post_s_ = pending.s;
    return;
  }
  if (gradients_.pending != nullptr) {
    std::copy_n(pending.q.data(), D, gradients_.pending);
    std::copy_n(pending.s.data(), D, gradients_.pending + D);
    return;
  }
  for_units([&](size_t unit, ThreadBuffers& b) {
    StageClock clock(clock_times(b));
    for (const Segment& s : plan.units[unit]) {
      float* dx = gradients_.x + s.begin * D;
      simd.finish(dx, D, nullptr, input.x + s.begin * D, D, pending.q.data(), pending.s.data(), dx,
                  D, s.end - s.begin, D);
    }
    clock.mark(Stage::norm);
  });
}

}  // namespace rotrnn::kernels
