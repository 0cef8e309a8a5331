#include "rotrnn/kernels/block/block_backward.h"

#include <algorithm>

namespace rotrnn::kernels {

BlockBackward::BlockBackward(const BlockConfig& config, const PackedSequences& sequences,
                             const BlockParameters& parameters, const BlockInput& input,
                             BlockSaved& saved, const OutputGradient& gradient,
                             const BlockGradients& gradients, Arena& scratch)
    : BlockCall(config, sequences, parameters, input, saved, scratch, true),
      gradient_(gradient),
      gradients_(gradients) {
  const auto zeros = [&](size_t count) {
    double* p = scratch.take<double>(count);
    std::fill_n(p, count, 0.0);
    return p;
  };
  sums_.resize(plan.units.size());
  for (UnitSums& s : sums_) {
    s.W = scratch.take<float>(S2 * D);
    for (size_t d = 0; d < directions(); ++d) s.V[d] = scratch.take<float>(D * S2);
    s.glu = scratch.take<float>(G * D);
    s.glu_bias = zeros(G);
    s.D = zeros(D);
    s.e = zeros(D);
    s.norm_sum = zeros(D);
    s.norm_product = zeros(D);
    s.b = zeros(S2);
    s.lambda = zeros(S2);
    s.start = zeros(S2);
  }
  carries_.resize(static_cast<size_t>(threads) * S2);
  if (mixed()) {
    du_ = scratch.take<float>(n * D);
    if (normed_branch()) u_ = scratch.take<float>(n * D);
    if (saved.y == nullptr && !bare()) y_ = scratch.take<float>(n * D);
  } else if (two_pass()) {
    for (size_t d = 0; d < directions(); ++d) {
      dz_[d] = {scratch.take<float>(n * saved.stride), saved.stride};
    }
    // Long sequences: a product less in the second pass, for the room of one block's states.
    for (size_t d = 0; plan.chunked && saved.z[0] == nullptr && d < directions(); ++d) {
      z_[d] = {scratch.take<float>(n * saved.stride), saved.stride};
    }
  }
  const size_t stride = parameters.layer.lambda_stride;
  if (stride != 0 && gradients_.layer.lambda_re == nullptr)
    gradients_.layer.lambda_re = scratch.take<float>(n * stride);
  if (stride != 0 && gradients_.layer.lambda_im == nullptr)
    gradients_.layer.lambda_im = scratch.take<float>(n * stride);
}

View BlockBackward::output_gradient(const Tile& t, ThreadBuffers& b, UnitSums* sums) {
  View g = {const_cast<float*>(gradient_.value) + t.begin * D, D};
  if (gradient_.q != nullptr) {
    simd.finish(g.data, g.ld, nullptr, gradient_.out + t.begin * D, D, gradient_.q, gradient_.s,
                b.dout.data, b.dout.ld, t.rows, D);
    g = b.dout;
  }
  if (config.prenorm || config.norm == Norm::none) return g;
  const float* raw = saved.raw + t.begin * D;
  if (batch_norm()) {
    simd.finish(g.data, g.ld, saved.norm_a, raw, D, post_q_.data(), post_s_.data(), b.dout.data,
                b.dout.ld, t.rows, D);
    return b.dout;
  }
  if (g.data != b.dout.data) {
    for (size_t r = 0; r < t.rows; ++r)
      std::copy_n(g.data + r * g.ld, D, b.dout.data + r * b.dout.ld);
  }
  std::fill_n(b.sums, 2 * D, 0.0f);
  simd.layer_norm_backward(b.dout.data, b.dout.ld, nullptr, 0, nullptr, raw, D, saved.norm_a,
                           static_cast<float>(config.eps), nullptr, 0, b.dout.data, b.dout.ld,
                           b.sums, b.sums + D, t.rows, D);
  if (sums != nullptr) {
    flush(b.sums, sums->norm_sum, D);
    flush(b.sums + D, sums->norm_product, D);
  }
  return b.dout;
}

/// z of a tile, per direction: kept, or scanned again from its boundary.
void BlockBackward::states(const Tile& t, const View& u, ThreadBuffers& b, View* z) {
  if (saved.z[0] != nullptr) {
    for (size_t d = 0; d < directions(); ++d) z[d] = at({saved.z[d], saved.stride}, t);
    return;
  }
  for (size_t d = 0; d < directions(); ++d) z[d] = z_[d].data != nullptr ? at(z_[d], t) : b.z[d];
  drive(t, u, z[0]);
  if (config.bidirectional) std::copy_n(z[0].data, t.rows * z[0].ld, z[1].data);
  std::vector<float> state(S2);
  for (size_t d = 0; d < directions(); ++d) {
    const auto direction = Direction(d);
    std::copy_n(state_before(t, direction), S2, state.data());
    simd.scan(scan_rows(z[d], t, direction), t.rows, S, scan_lambda(t, direction), state.data());
  }
}

/// The same in the second of two passes.
void BlockBackward::states_again(const Tile& t, const View& u, ThreadBuffers& b, View* z) {
  if (z_[0].data == nullptr) return states(t, u, b, z);
  for (size_t d = 0; d < directions(); ++d) z[d] = at(z_[d], t);
}

void BlockBackward::recompute_output(const Tile& t, const View& u, const View* z,
                                     ThreadBuffers& b) {
  const DiagonalLayer& layer = parameters.layer;
  if (mixed()) {
    for (size_t r = 0; r < t.rows; ++r)
      std::copy_n(y_ + (t.begin + r) * D, D, b.y.data + r * b.y.ld);
  } else {
    read_out(t, z, b.y);
  }
  const auto preactivate = simd.preactivate[curve(config.activation)];
  preactivate(b.y.data, b.y.ld, u.data, u.ld, layer.D, layer.e, mask1(t), b.h.data, b.h.ld, t.rows,
              D);
  if (!glu()) return;
  gemm.multiply(b.gate.data, b.gate.ld, b.h.data, b.h.ld, packed.glu, t.rows, D, G, false);
  float* q = full() ? b.gate.data : b.h.data;
  const View x = x_tile(t);
  simd.gate(q, full() ? b.gate.ld : b.h.ld, full() ? parameters.value_bias : nullptr,
            full() ? b.gate.data + D : b.gate.data, b.gate.ld, parameters.gate_bias, nullptr,
            x.data, x.ld, b.dy.data, b.dy.ld, t.rows, D, nullptr);
}

/// From the gradient of out to that of y (in b.dy), with the weight gradients of GLU.
void BlockBackward::activation_backward(const Tile& t, const View& u, const View& dout,
                                        const View* z, ThreadBuffers& b, UnitSums& sums) {
  StageClock clock(clock_times(b));
  const bool kept = saved.y != nullptr;
  if (!kept) recompute_output(t, u, z, b);
  const View y = kept ? at({saved.y, D}, t) : b.y;
  const View gate = kept ? at({saved.gate, G}, t) : b.gate;
  float* bias_sum = b.sums;
  float* D_sum = b.sums + G;
  float* e_sum = D_sum + D;
  std::fill_n(b.sums, G + 2 * D, 0.0f);
  const auto curve_pair = simd.curve_pair[curve(config.activation)];
  curve_pair(y.data, y.ld, glu() ? mask1(t) : mask2(t), b.h.data, b.h.ld, b.d.data, b.d.ld, t.rows,
             D);
  const float* s = full() ? gate.data + D : gate.data;
  if (glu()) {
    const View q = full() ? gate : gated(config.activation) == Gated::hidden ? b.h : y;
    float* ds = full() ? b.dgate.data + D : b.dgate.data;
    simd.gate_backward(dout.data, dout.ld, mask2(t), q.data, q.ld, s, gate.ld,
                       full() ? b.dgate.data : nullptr, b.dgate.ld, ds, b.dgate.ld, bias_sum,
                       full() ? bias_sum + D : bias_sum, t.rows, D);
    clock.mark(Stage::activation);
    gemm.outer(sums.glu, D, b.dgate.data, b.dgate.ld, b.h.data, b.h.ld, G, t.rows, D,
               sums.wrote_output);
    gemm.multiply(b.dy.data, b.dy.ld, b.dgate.data, b.dgate.ld, packed_back.glu, t.rows, G, D,
                  false);
    clock.mark(Stage::glu);
  } else {
    for (size_t r = 0; r < t.rows; ++r) {
      std::copy_n(dout.data + r * dout.ld, D, b.dy.data + r * b.dy.ld);
    }
  }
  simd.preactivate_backward(b.dy.data, b.dy.ld, b.d.data, b.d.ld, dout.data, dout.ld, mask2(t), s,
                            gate.ld, gated(config.activation) == Gated::hidden,
                            gated(config.activation) == Gated::output, u.data, u.ld, D_sum, e_sum,
                            t.rows, D);
  flush(bias_sum, sums.glu_bias, G);
  flush(D_sum, sums.D, D);
  flush(e_sum, sums.e, D);
  clock.mark(Stage::activation);
}

/// From the gradient of out to that of y (in b.dy), with all weight gradients on the way and V's.
void BlockBackward::branch_backward(const Tile& t, const View& u, const View& dout, const View* z,
                                    ThreadBuffers& b, UnitSums& sums) {
  StageClock clock(clock_times(b));
  if (bare()) {
    std::fill_n(b.sums, 2 * D, 0.0f);
    simd.project_backward(dout.data, dout.ld, mask2(t), u.data, u.ld, b.dy.data, b.dy.ld, b.sums,
                          b.sums + D, t.rows, D);
    flush(b.sums, sums.D, D);
    flush(b.sums + D, sums.e, D);
  } else {
    activation_backward(t, u, dout, z, b, sums);
    clock = StageClock(clock_times(b));
  }
  clock.mark(Stage::activation);
  for (size_t d = 0; d < directions() && !mixed(); ++d) {
    gemm.outer(sums.V[d], S2, b.dy.data, b.dy.ld, z[d].data, z[d].ld, D, t.rows, S2,
               sums.wrote_output);
  }
  sums.wrote_output = true;
  clock.mark(Stage::v);
}

void BlockBackward::state_gradient(const Tile& t, const View& dy, Direction direction,
                                   const View& dz) {
  gemm.multiply(dz.data, dz.ld, dy.data, dy.ld, packed_back.V[direction], t.rows, D, S2, false);
}

/// The adjoint of a sequence begins with the gradient given on its final state.
void BlockBackward::begin_carry(const Tile& t, Direction direction, float* carry) const {
  const float* final = direction == kForward ? gradient_.final : gradient_.final_reverse;
  if (final == nullptr) {
    std::fill_n(carry, S2, 0.0f);
  } else {
    std::copy_n(final + t.sequence * S2, S2, carry);
  }
}

void BlockBackward::adjoint_tile(const Tile& t, const View& g, const View& z, Direction direction,
                                 float* carry, UnitSums& sums) {
  if (ends(t, direction)) begin_carry(t, direction, carry);
  ScanLambdaGradient to{sums.lambda, nullptr, nullptr, false};
  const size_t stride = parameters.layer.lambda_stride;
  if (stride != 0) {
    const size_t row = direction == kForward ? t.begin : t.begin + t.rows - 1;
    // The reverse direction comes first and writes, the forward one adds.
    to = {nullptr, gradients_.layer.lambda_re + row * stride,
          gradients_.layer.lambda_im + row * stride, config.bidirectional && direction == kForward};
  }
  simd.scan_adjoint(scan_rows(g, t, direction), t.rows, S, scan_lambda(t, direction),
                    scan_rows(z, t, direction), state_before(t, direction), carry, to);
  if (starts(t, direction)) start_gradient(t, g, direction, carry, sums);
}

/// The gradient of z_0 (in carry) goes to the given state, or through start to start and v_1.
void BlockBackward::start_gradient(const Tile& t, const View& g, Direction direction,
                                   const float* carry, UnitSums& sums) {
  const float* given = direction == kForward ? input.initial : input.initial_reverse;
  float* to = direction == kForward ? gradients_.initial : gradients_.initial_reverse;
  if (to != nullptr) std::copy_n(carry, S2, to + t.sequence * S2);
  const DiagonalLayer& layer = parameters.layer;
  if (given != nullptr || layer.start_re == nullptr) return;
  const float* v = saved.first_v[direction] + t.sequence * S2;
  float* first = scan_rows(g, t, direction).first;
  for (size_t i = 0; i < S; ++i) {
    const float re = carry[i], im = carry[S + i];
    sums.start[i] += static_cast<double>(re * v[i] + im * v[S + i]);
    sums.start[S + i] += static_cast<double>(im * v[i] - re * v[S + i]);
    first[i] += layer.start_re[i] * re + layer.start_im[i] * im;
    first[S + i] += layer.start_re[i] * im - layer.start_im[i] * re;
  }
}

/// From the gradient of v to those of W and x.
void BlockBackward::input_backward(const Tile& t, const View& u, const View& g, const View& dout,
                                   const View& dy, ThreadBuffers& b, UnitSums& sums) {
  StageClock clock(clock_times(b));
  gemm.outer(sums.W, D, g.data, g.ld, u.data, u.ld, S2, t.rows, D, sums.wrote_input);
  sums.wrote_input = true;
  if (gradients_.layer.b != nullptr) simd.column_sum(g.data, g.ld, t.rows, S2, sums.b);
  const View du = b.h;
  gemm.multiply(du.data, du.ld, g.data, g.ld, packed_back.W, t.rows, S2, D, false);
  clock.mark(Stage::w);
  norm_backward(t, du, dout, dy, b, sums);
}

/// From the gradient of u but for D⊙u to that of x.
void BlockBackward::norm_backward(const Tile& t, const View& du, const View& dout, const View& dy,
                                  ThreadBuffers& b, UnitSums& sums) {
  StageClock clock(clock_times(b));
  const float* x = x_tile(t).data;
  float* dx = gradients_.x + t.begin * D;
  const View past = config.residual ? dout : View{nullptr, 0};  // the residual
  std::fill_n(b.sums, 2 * D, 0.0f);
  if (normed_branch() && !batch_norm()) {
    simd.layer_norm_backward(du.data, du.ld, dy.data, dy.ld, parameters.layer.D, x, D, saved.norm_a,
                             static_cast<float>(config.eps), past.data, past.ld, dx, D, b.sums,
                             b.sums + D, t.rows, D);
  } else {
    const float* mean = normed_branch() ? saved.norm_mean : nullptr;
    simd.batch_norm_backward(du.data, du.ld, dy.data, dy.ld, parameters.layer.D, x, D, mean,
                             saved.norm_rstd, saved.norm_a, past.data, past.ld, dx, D, b.sums,
                             b.sums + D, t.rows, D);
  }
  if (normed_branch()) {
    flush(b.sums, sums.norm_sum, D);
    flush(b.sums + D, sums.norm_product, D);
  }
  clock.mark(Stage::norm);
}

void BlockBackward::whole_sequences() {
  for_units([&](size_t unit, ThreadBuffers& b) {
    UnitSums& sums = sums_[unit];
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, true, [&](const Tile& t) {
        StageClock clock(clock_times(b));
        const View u = branch_input(t, b);
        const View dout = output_gradient(t, b, &sums);
        clock.mark(Stage::norm);
        View z[2];
        states(t, u, b, z);
        clock.mark(Stage::scan);
        branch_backward(t, u, dout, z, b, sums);
        clock = StageClock(clock_times(b));
        state_gradient(t, b.dy, kForward, b.dz);
        clock.mark(Stage::v);
        adjoint_tile(t, b.dz, z[0], kForward, carry_of(b), sums);
        clock.mark(Stage::scan);
        input_backward(t, u, b.dz, dout, b.dy, b, sums);
      });
    }
  });
}

/// The first of two passes: to the gradients of the states (kept in dz_) and dy (kept in dx). The
/// adjoint of the reverse direction runs along time, so it is done here when nothing is cut.
void BlockBackward::output_pass() {
  if (plan.chunked) {
    for (size_t d = 0; d < directions(); ++d) {
      local_[d].assign(plan.segments * S2, 0.0f);
      carry_[d].assign(plan.segments * S2, 0.0f);
    }
  }
  for_units([&](size_t unit, ThreadBuffers& b) {
    UnitSums& sums = sums_[unit];
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        StageClock clock(clock_times(b));
        const View u = branch_input(t, b);
        const View dout = output_gradient(t, b, &sums);
        clock.mark(Stage::norm);
        View z[2];
        states(t, u, b, z);
        clock.mark(Stage::scan);
        branch_backward(t, u, dout, z, b, sums);
        clock = StageClock(clock_times(b));
        for (size_t d = 0; d < directions(); ++d) {
          state_gradient(t, b.dy, Direction(d), at(dz_[d], t));
        }
        clock.mark(Stage::v);
        if (!dy_is_dout()) {
          for (size_t r = 0; r < t.rows; ++r) {
            std::copy_n(b.dy.data + r * b.dy.ld, D, gradients_.x + (t.begin + r) * D);
          }
        }
        if (config.bidirectional && !plan.chunked) {
          adjoint_tile(t, at(dz_[1], t), z[1], kReverse, carry_of(b), sums);
        }
        clock.mark(Stage::scan);
      });
      if (plan.chunked) local_adjoints(segment);
    }
  });
  if (!plan.chunked) return;
  for (size_t i = 0; i < sequences.count; ++i) {
    for (size_t d = 0; d < directions(); ++d) {
      join_segments(i, Direction(d), true, local_[d].data(), carry_[d].data());
    }
  }
}

void BlockBackward::local_adjoints(const Segment& segment) {
  for (size_t d = 0; d < directions(); ++d) {
    const auto direction = Direction(d);
    float* local = local_[d].data() + segment.id * S2;
    for_tiles(segment, direction == kForward, [&](const Tile& t) {
      if (ends(t, direction)) begin_carry(t, direction, local);
      simd.scan_adjoint_end(scan_rows(at(dz_[d], t), t, direction), t.rows, S,
                            scan_lambda(t, direction), local);
    });
  }
}

/// The second pass, against time: the adjoints that wait, then W and the norm.
void BlockBackward::input_pass() {
  for_units([&](size_t unit, ThreadBuffers& b) {
    UnitSums& sums = sums_[unit];
    float* carry = carry_of(b);
    for (const Segment& segment : plan.units[unit]) {
      if (plan.chunked && config.bidirectional) {
        std::copy_n(carry_[1].data() + segment.id * S2, S2, carry);
        for_tiles(segment, false, [&](const Tile& t) {
          View z[2];
          states_again(t, {}, b, z);  // kept by the first pass, or by forward
          adjoint_tile(t, at(dz_[1], t), z[1], kReverse, carry, sums);
        });
      }
      if (plan.chunked) std::copy_n(carry_[0].data() + segment.id * S2, S2, carry);
      for_tiles(segment, true, [&](const Tile& t) {
        StageClock clock(clock_times(b));
        const View u = branch_input(t, b);
        const View dout = output_gradient(t, b, nullptr);
        clock.mark(Stage::norm);
        View z[2];
        states_again(t, u, b, z);
        const View g = at(dz_[0], t);
        adjoint_tile(t, g, z[0], kForward, carry, sums);
        if (config.bidirectional) {
          const View other = at(dz_[1], t);
          simd.axpy(g.data, other.data, 1.0f, t.rows * g.ld);
        }
        clock.mark(Stage::scan);
        if (!dy_is_dout()) {
          for (size_t r = 0; r < t.rows; ++r) {
            std::copy_n(gradients_.x + (t.begin + r) * D, D, b.dy.data + r * b.dy.ld);
          }
        }
        input_backward(t, u, g, dout, dy_is_dout() ? dout : b.dy, b, sums);
      });
    }
  });
}

/// A SequenceLayer in place of the diagonal one: to dy (kept in dx), through it, and to
/// x.
void BlockBackward::sequence_layer_pass() {
  const float* u = whole_input(u_);
  if (y_ != nullptr) {
    const WallClock clock(times, threads);
    config.sequence_layer->forward(u, y_);
  }
  float* dy = gradients_.x;
  for_units([&](size_t unit, ThreadBuffers& b) {
    UnitSums& sums = sums_[unit];
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        StageClock clock(clock_times(b));
        const View dout = output_gradient(t, b, &sums);
        clock.mark(Stage::norm);
        branch_backward(t, at({const_cast<float*>(u), D}, t), dout, nullptr, b, sums);
        for (size_t r = 0; r < t.rows; ++r) {
          std::copy_n(b.dy.data + r * b.dy.ld, D, dy + (t.begin + r) * D);
        }
      });
    }
  });
  {
    const WallClock clock(times, threads);
    config.sequence_layer->backward(u, dy, du_);
  }
  for_units([&](size_t unit, ThreadBuffers& b) {
    UnitSums& sums = sums_[unit];
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        StageClock clock(clock_times(b));
        const View dout = output_gradient(t, b, nullptr);
        clock.mark(Stage::norm);
        for (size_t r = 0; r < t.rows; ++r) {
          std::copy_n(dy + (t.begin + r) * D, D, b.dy.data + r * b.dy.ld);
        }
        norm_backward(t, at({du_, D}, t), dout, b.dy, b, sums);
        sums.wrote_input = true;
      });
    }
  });
}

void BlockBackward::run() {
  const bool post_batch = !config.prenorm && batch_norm();
  if (gradients_.pending != nullptr) std::fill_n(gradients_.pending, 2 * D, 0.0f);
  if (post_batch) postnorm_sums();
  if (post_batch && trains_norm()) finish_norm();
  if (mixed()) {
    sequence_layer_pass();
  } else if (two_pass()) {
    output_pass();
    input_pass();
  } else {
    whole_sequences();
  }
  empty_sequences();
  sum_weights();
  sum_vectors();
  if (config.prenorm && trains_norm()) finish_norm();
}

void block_backward(const BlockConfig& config, const PackedSequences& sequences,
                    const BlockParameters& parameters, const BlockInput& input, BlockSaved& saved,
                    const OutputGradient& gradient, const BlockGradients& gradients,
                    Arena& scratch) {
  BlockBackward(config, sequences, parameters, input, saved, gradient, gradients, scratch).run();
}

}  // namespace rotrnn::kernels
