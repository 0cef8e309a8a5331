#include <algorithm>

#include "rotrnn/kernels/block/block_common.h"

namespace rotrnn::kernels {
namespace {

class BlockForward : public BlockCall {
 public:
  BlockForward(const BlockConfig& config, const PackedSequences& sequences,
               const BlockParameters& parameters, const BlockInput& input,
               const BlockOutput& output, BlockSaved& saved, Arena& scratch)
      : BlockCall(config, sequences, parameters, input, saved, scratch, false), output_(output) {
    if (mixed()) {
      y_ = saved.y != nullptr ? saved.y : scratch.take<float>(n * D);
      if (normed_branch()) u_ = scratch.take<float>(n * D);
    } else if (!two_pass() || saved.z[0] != nullptr) {
      for (size_t d = 0; d < directions(); ++d) z_[d] = {saved.z[d], saved.stride};
    } else {
      for (size_t d = 0; d < directions(); ++d) {
        z_[d] = {scratch.take<float>(n * saved.stride), saved.stride};
      }
    }
    state_.resize(static_cast<size_t>(threads) * S2);
  }

  void run();

 private:
  void input_statistics();
  void whole_sequences();
  void drive_pass();
  void output_pass();
  void sequence_layer_pass();
  void postnorm_pass();
  void empty_sequences();
  void scan_tile(const Tile& t, const View& z, Direction direction, float* state);
  void output_tile(const Tile& t, const View& u, const View* z, ThreadBuffers& b, size_t unit);
  float* state_of(const ThreadBuffers& b) {
    return state_.data() + static_cast<size_t>(&b - buffers.data()) * S2;
  }
  double* unit_statistics(size_t unit) { return statistics_.data() + unit * (1 + 2 * D); }
  void zero_statistics() { statistics_.assign(plan.units.size() * (1 + 2 * D), 0.0); }
  std::vector<double> total_statistics() const;
  bool gathers() const {
    return output_.statistics != nullptr || (!config.prenorm && trains_norm());
  }

  const BlockOutput& output_;
  View z_[2] = {};                     // all tokens, where they are kept or two passes need them
  float *u_ = nullptr, *y_ = nullptr;  // [n, D], of a sequence layer
  std::vector<float> state_;           // [threads, 2S]
  std::vector<float> local_[2];        // [segments, 2S]: ends of segments begun at zero
  std::vector<float> carry_[2];        // [segments, 2S]: true states before segments
  std::vector<double> statistics_;
};

std::vector<double> BlockForward::total_statistics() const {
  std::vector<double> total(1 + 2 * D, 0.0);
  for (size_t i = 0; i < statistics_.size(); ++i) total[i % total.size()] += statistics_[i];
  return total;
}

void BlockForward::input_statistics() {
  zero_statistics();
  for_units([&](size_t unit, ThreadBuffers& b) {
    StageClock clock(times == nullptr ? nullptr : b.times);
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        const View x = x_tile(t);
        simd.column_statistics(x.data, x.ld, t.rows, D, b.statistics);
        add_statistics(b.statistics, t.rows, unit_statistics(unit));
      });
    }
    clock.mark(Stage::norm);
  });
}

/// Scans a tile in place from `state`; notes what backward or the caller wants.
void BlockForward::scan_tile(const Tile& t, const View& z, Direction direction, float* state) {
  if (starts(t, direction)) std::copy_n(saved.z0[direction] + t.sequence * S2, S2, state);
  if (saved.boundary[direction] != nullptr) {
    std::copy_n(state, S2, saved.boundary[direction] + t.index * S2);
  }
  simd.scan(scan_rows(z, t, direction), t.rows, S, scan_lambda(t, direction), state);
  float* final = direction == kForward ? output_.final : output_.final_reverse;
  if (ends(t, direction) && final != nullptr) std::copy_n(state, S2, final + t.sequence * S2);
}

void BlockForward::output_tile(const Tile& t, const View& u, const View* z, ThreadBuffers& b,
                               size_t unit) {
  StageClock clock(times == nullptr ? nullptr : b.times);
  const DiagonalLayer& layer = parameters.layer;
  const View x = residual(t);
  const View out = at({saved.raw != nullptr ? saved.raw : output_.out, D}, t);
  const bool straight = bare() && !config.residual;
  const View y = mixed()              ? at({y_, D}, t)
                 : saved.y != nullptr ? at({saved.y, D}, t)
                 : straight           ? out
                                      : b.y;
  if (!mixed()) read_out(t, z, y);
  clock.mark(Stage::v);
  const TileStatistics* statistics = gathers() ? &b.statistics : nullptr;
  if (bare()) {
    simd.project(y.data, y.ld, u.data, u.ld, layer.D, layer.e, mask2(t), x.data, x.ld, out.data,
                 out.ld, t.rows, D, statistics);
    if (statistics != nullptr) add_statistics(*statistics, t.rows, unit_statistics(unit));
    clock.mark(Stage::activation);
    return;
  }
  const float* mask = glu() ? mask1(t) : mask2(t);
  const auto preactivate = simd.preactivate[curve(config.activation)];
  preactivate(y.data, y.ld, u.data, u.ld, layer.D, layer.e, mask, b.h.data, b.h.ld, t.rows, D);
  clock.mark(Stage::activation);
  if (glu()) {
    const View g = saved.gate != nullptr ? at({saved.gate, G}, t) : b.gate;
    gemm.multiply(g.data, g.ld, b.h.data, b.h.ld, packed.glu, t.rows, D, G, false);
    clock.mark(Stage::glu);
    const View q = full() ? g : gated(config.activation) == Gated::hidden ? b.h : y;
    float* s = full() ? g.data + D : g.data;
    simd.gate(q.data, q.ld, full() ? parameters.value_bias : nullptr, s, g.ld, parameters.gate_bias,
              mask2(t), x.data, x.ld, out.data, out.ld, t.rows, D, statistics);
  } else {
    simd.residual(b.h.data, b.h.ld, x.data, x.ld, out.data, out.ld, t.rows, D, statistics);
  }
  if (statistics != nullptr) add_statistics(*statistics, t.rows, unit_statistics(unit));
  clock.mark(Stage::activation);
}

void BlockForward::whole_sequences() {
  for_units([&](size_t unit, ThreadBuffers& b) {
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        StageClock clock(times == nullptr ? nullptr : b.times);
        const View u = branch_input(t, b);
        clock.mark(Stage::norm);
        const View z = z_[0].data != nullptr ? at(z_[0], t) : b.z[0];
        drive(t, u, z);
        clock.mark(Stage::w);
        if (t.first) set_start(t, z, kForward);
        scan_tile(t, z, kForward, state_of(b));
        clock.mark(Stage::scan);
        output_tile(t, u, &z, b, unit);
      });
    }
  });
}

/// The first of two passes: v for both directions, and the ends of segments where they are cut.
void BlockForward::drive_pass() {
  if (plan.chunked) {
    for (size_t d = 0; d < directions(); ++d) {
      local_[d].assign(plan.segments * S2, 0.0f);
      carry_[d].assign(plan.segments * S2, 0.0f);
    }
  }
  for_units([&](size_t unit, ThreadBuffers& b) {
    for (const Segment& segment : plan.units[unit]) {
      float* local = plan.chunked ? local_[0].data() + segment.id * S2 : state_of(b);
      for_tiles(segment, false, [&](const Tile& t) {
        StageClock clock(times == nullptr ? nullptr : b.times);
        const View u = branch_input(t, b);
        clock.mark(Stage::norm);
        const View z = at(z_[0], t);
        drive(t, u, z);
        clock.mark(Stage::w);
        for (size_t d = 0; d < directions(); ++d) {
          if (starts(t, Direction(d))) set_start(t, z, Direction(d));
        }
        if (config.bidirectional) {
          std::copy_n(z.data, t.rows * z.ld, at(z_[1], t).data);
        }
        if (plan.chunked) {
          if (t.first) std::copy_n(saved.z0[0] + t.sequence * S2, S2, local);
          simd.scan_end(scan_rows(z, t, kForward), t.rows, S, scan_lambda(t, kForward), local);
        } else {
          scan_tile(t, z, kForward, local);
        }
        clock.mark(Stage::scan);
      });
      if (!plan.chunked || !config.bidirectional) continue;
      float* back = local_[1].data() + segment.id * S2;
      for_tiles(segment, true, [&](const Tile& t) {
        const View z = at(z_[1], t);
        if (t.last) std::copy_n(saved.z0[1] + t.sequence * S2, S2, back);
        simd.scan_end(scan_rows(z, t, kReverse), t.rows, S, scan_lambda(t, kReverse), back);
      });
    }
  });
  if (!plan.chunked) return;
  for (size_t i = 0; i < sequences.count; ++i) {
    for (size_t d = 0; d < directions(); ++d) {
      join_segments(i, Direction(d), false, local_[d].data(), carry_[d].data());
    }
  }
}

/// The second pass, against time if bidirectional: the scans that wait, and all that follows.
void BlockForward::output_pass() {
  for_units([&](size_t unit, ThreadBuffers& b) {
    float* state = state_of(b);
    for (const Segment& segment : plan.units[unit]) {
      if (plan.chunked && config.bidirectional) {
        std::copy_n(carry_[0].data() + segment.id * S2, S2, state);
        for_tiles(segment, false,
                  [&](const Tile& t) { scan_tile(t, at(z_[0], t), kForward, state); });
      }
      const Direction waits = config.bidirectional ? kReverse : kForward;
      if (plan.chunked) std::copy_n(carry_[waits].data() + segment.id * S2, S2, state);
      for_tiles(segment, config.bidirectional, [&](const Tile& t) {
        StageClock clock(times == nullptr ? nullptr : b.times);
        const View z[2] = {at(z_[0], t), config.bidirectional ? at(z_[1], t) : View{}};
        scan_tile(t, z[waits], waits, state);
        clock.mark(Stage::scan);
        const View u = branch_input(t, b);
        clock.mark(Stage::norm);
        output_tile(t, u, z, b, unit);
      });
    }
  });
}

/// A SequenceLayer in place of the diagonal one.
void BlockForward::sequence_layer_pass() {
  const float* u = whole_input(u_);
  {
    const WallClock clock(times, threads);
    config.sequence_layer->forward(u, y_);
  }
  for_units([&](size_t unit, ThreadBuffers& b) {
    for (const Segment& segment : plan.units[unit]) {
      for_tiles(segment, false, [&](const Tile& t) {
        output_tile(t, at({const_cast<float*>(u), D}, t), nullptr, b, unit);
      });
    }
  });
}

void BlockForward::postnorm_pass() {
  const float* raw = saved.raw != nullptr ? saved.raw : output_.out;
  for_units([&](size_t unit, ThreadBuffers& b) {
    StageClock clock(times == nullptr ? nullptr : b.times);
    for (const Segment& s : plan.units[unit]) {
      const size_t rows = s.end - s.begin, at = s.begin * D;
      if (batch_norm()) {
        simd.affine(raw + at, D, saved.norm_a, saved.norm_c, output_.out + at, D, rows, D);
      } else {
        simd.layer_norm(raw + at, D, saved.norm_a, saved.norm_c, static_cast<float>(config.eps),
                        output_.out + at, D, rows, D);
      }
    }
    clock.mark(Stage::norm);
  });
}

/// Without tokens the final state is the initial one.
void BlockForward::empty_sequences() {
  const float* initial[2] = {input.initial, input.initial_reverse};
  float* final[2] = {output_.final, output_.final_reverse};
  for (size_t i = 0; i < sequences.count; ++i) {
    if (sequences.begin(i) != sequences.end(i)) continue;
    for (size_t d = 0; d < directions(); ++d) {
      if (final[d] == nullptr) continue;
      std::fill_n(final[d] + i * S2, S2, 0.0f);
      if (initial[d] != nullptr) std::copy_n(initial[d] + i * S2, S2, final[d] + i * S2);
    }
  }
}

void BlockForward::run() {
  if (!trains_norm()) {
    set_given_norm();
  } else if (config.prenorm) {
    if (input.statistics == nullptr) input_statistics();
    set_norm(input.statistics != nullptr ? input.statistics : total_statistics().data());
  }
  zero_statistics();
  if (mixed()) {
    sequence_layer_pass();
  } else if (two_pass()) {
    drive_pass();
    output_pass();
  } else {
    whole_sequences();
  }
  empty_sequences();
  const bool postnorm = !config.prenorm && config.norm != Norm::none;
  if (postnorm && trains_norm()) set_norm(total_statistics().data());
  if (postnorm) postnorm_pass();
  if (output_.statistics == nullptr) return;
  const std::vector<double> total = total_statistics();
  std::copy(total.begin(), total.end(), output_.statistics);
}

}  // namespace

void block_forward(const BlockConfig& config, const PackedSequences& sequences,
                   const BlockParameters& parameters, const BlockInput& input,
                   const BlockOutput& output, BlockSaved& saved, Arena& scratch) {
  BlockForward(config, sequences, parameters, input, output, saved, scratch).run();
}

}  // namespace rotrnn::kernels
