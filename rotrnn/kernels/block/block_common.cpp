#include "rotrnn/kernels/block/block_common.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {

size_t glu_width(const BlockConfig& config) {
  if (!has_gate(config.activation)) return 0;
  return has_value(config.activation) ? 2 * config.D : config.D;
}

// 96 rows: a multiple of the 6 and 12 rows of the micro-kernels; the weights (0.3–1.3 MB, from L3)
// are then read once per 96 tokens, under 3 GB/s per core.
size_t default_tile(const BlockConfig&) {
  return 96;
}

BlockSaved block_save(const BlockConfig& config, const PackedSequences& sequences, Arena& arena) {
  BlockSaved s;
  const size_t n = sequences.tokens(), S2 = 2 * config.S, D = config.D;
  const size_t directions = config.bidirectional ? 2 : 1;
  s.stride = padded_stride(S2);
  s.mean = arena.take<double>(D);
  s.variance = arena.take<double>(D);
  s.norm_mean = arena.take<float>(D);
  s.norm_rstd = arena.take<float>(D);
  s.norm_a = arena.take<float>(D);
  s.norm_c = arena.take<float>(D);
  for (size_t d = 0; d < directions; ++d) {
    s.z0[d] = arena.take<float>(sequences.count * S2);
    s.first_v[d] = arena.take<float>(sequences.count * S2);
  }
  if (config.keep == Keep::nothing) return s;
  if (!config.prenorm && config.norm != Norm::none) s.raw = arena.take<float>(n * D);
  if (config.keep == Keep::all) {
    const size_t kept = config.sequence_layer != nullptr ? 0 : directions;
    for (size_t d = 0; d < kept; ++d) s.z[d] = arena.take<float>(n * s.stride);
    if (config.activation != Activation::none) s.y = arena.take<float>(n * D);
    s.gate = arena.take<float>(n * glu_width(config));
  } else {
    const size_t tile = config.tile != 0 ? config.tile : default_tile(config);
    size_t tiles = 0;
    for (size_t i = 0; i < sequences.count; ++i) {
      tiles += (sequences.end(i) - sequences.begin(i) + tile - 1) / tile;
    }
    for (size_t d = 0; d < directions; ++d) s.boundary[d] = arena.take<float>(tiles * S2);
  }
  return s;
}

BlockCall::BlockCall(const BlockConfig& config, const PackedSequences& sequences,
                     const BlockParameters& parameters, const BlockInput& input, BlockSaved& saved,
                     Arena& scratch, bool backward)
    : config(config),
      sequences(sequences),
      parameters(parameters),
      input(input),
      saved(saved),
      scratch(scratch),
      simd(table()),
      gemm(kernels::gemm()),
      D(config.D),
      S(config.S),
      S2(2 * config.S),
      G(glu_width(config)),
      n(sequences.tokens()),
      threads(config.threads > 0 ? config.threads : available_threads()),
      plan(make_plan(sequences, config.tile != 0 ? config.tile : default_tile(config), threads,
                     config.balance)),
      times(config.times == nullptr ? nullptr
            : backward              ? config.times->backward
                                    : config.times->forward) {
  scratch.reset();
  // Low-memory backward recomputes forward, and needs both.
  if (!backward || config.keep == Keep::boundaries) packed = pack_weights(false);
  if (backward) packed_back = pack_weights(true);
  take_buffers(backward);
}

float* BlockCall::pack(const float* b, size_t K, size_t N, bool transposed) {
  float* packed = scratch.take<float>(gemm.packed_size(K, N));
  gemm.pack(packed, b, K, N, transposed ? 1 : N, transposed ? K : 1);
  return packed;
}

PackedWeights BlockCall::pack_weights(bool backward) {
  const DiagonalLayer& s = parameters.layer;
  PackedWeights packed;
  const float* V[2] = {s.V, s.V_reverse};
  if (!mixed()) packed.W = pack(s.W, backward ? S2 : D, backward ? D : S2, !backward);
  for (size_t d = 0; d < directions() && !mixed(); ++d) {
    packed.V[d] = pack(V[d], backward ? D : S2, backward ? S2 : D, !backward);
  }
  if (!glu()) return packed;
  const float* weights = parameters.gate_weight;
  if (full()) {
    float* both = scratch.take<float>(G * D);
    std::copy_n(parameters.value_weight, D * D, both);
    std::copy_n(parameters.gate_weight, D * D, both + D * D);
    weights = both;
  }
  packed.glu = pack(weights, backward ? G : D, backward ? D : G, !backward);
  return packed;
}

void BlockCall::take_buffers(bool backward) {
  const auto view = [&](size_t width) {
    const size_t ld = padded_stride(width);
    return View{scratch.take<float>(plan.tile * ld), ld};
  };
  buffers.resize(static_cast<size_t>(threads));
  for (ThreadBuffers& b : buffers) {
    b.u = view(D);
    b.h = view(D);
    b.y = view(D);
    b.gate = view(G);
    b.z[0] = view(S2);
    b.z[1] = view(config.bidirectional ? S2 : 0);
    b.statistics = {scratch.take<float>(D), scratch.take<float>(D), scratch.take<float>(D)};
    b.sums = scratch.take<float>(G + 4 * D);
    if (!backward) continue;
    b.d = view(D);
    b.dy = view(D);
    b.dout = view(D);
    b.dgate = view(G);
    b.dz = view(S2);
  }
}

void run_units(BlockCall& call, const std::function<void(size_t, ThreadBuffers&)>& f) {
  parallel_for(call.threads, [&](int t) {
    const auto thread = static_cast<size_t>(t);
    for (size_t unit : call.plan.units_of_thread[thread]) f(unit, call.buffers[thread]);
  });
  if (call.times == nullptr) return;
  for (ThreadBuffers& b : call.buffers) {
    for (size_t i = 0; i < static_cast<size_t>(Stage::count); ++i) {
      call.times[i] += b.times[i];
      b.times[i] = 0;
    }
  }
}

void BlockCall::normalise(size_t begin, size_t rows, const View& u) const {
  const float* x = input.x + begin * D;
  if (batch_norm()) {
    simd.affine(x, D, saved.norm_a, saved.norm_c, u.data, u.ld, rows, D);
  } else {
    simd.layer_norm(x, D, saved.norm_a, saved.norm_c, static_cast<float>(config.eps), u.data, u.ld,
                    rows, D);
  }
}

View BlockCall::branch_input(const Tile& t, ThreadBuffers& b) const {
  if (!normed_branch()) return x_tile(t);
  normalise(t.begin, t.rows, b.u);
  return b.u;
}

const float* BlockCall::whole_input(float* to) {
  if (!normed_branch()) return input.x;
  for_units([&](size_t unit, ThreadBuffers& b) {
    StageClock clock(times == nullptr ? nullptr : b.times);
    for (const Segment& s : plan.units[unit])
      normalise(s.begin, s.end - s.begin, {to + s.begin * D, D});
    clock.mark(Stage::norm);
  });
  return to;
}

void BlockCall::drive(const Tile& t, const View& u, const View& v) const {
  gemm.multiply(v.data, v.ld, u.data, u.ld, packed.W, t.rows, D, S2, false);
  if (parameters.layer.b != nullptr) {
    simd.add_rows(v.data, v.ld, parameters.layer.b, t.rows, S2);
  }
}

ScanRows BlockCall::scan_rows(const View& v, const Tile& t, Direction direction) const {
  const auto step = static_cast<ptrdiff_t>(v.ld);
  if (direction == kForward) return {v.data, step};
  return {v.data + (t.rows - 1) * v.ld, -step};
}

ScanLambda BlockCall::scan_lambda(const Tile& t, Direction direction) const {
  const DiagonalLayer& s = parameters.layer;
  const auto step = static_cast<ptrdiff_t>(s.lambda_stride);
  const size_t row = direction == kForward ? t.begin : t.begin + t.rows - 1;
  const size_t offset = row * s.lambda_stride;
  return {s.lambda_re + offset, s.lambda_im + offset, direction == kForward ? step : -step};
}

const float* BlockCall::state_before(const Tile& t, Direction direction) const {
  if (starts(t, direction)) return saved.z0[direction] + t.sequence * S2;
  if (saved.boundary[direction] != nullptr) return saved.boundary[direction] + t.index * S2;
  const size_t row = direction == kForward ? t.begin - 1 : t.begin + t.rows;
  return saved.z[direction] + row * saved.stride;
}

void BlockCall::read_out(const Tile& t, const View* z, const View& y) const {
  for (size_t d = 0; d < directions(); ++d) {
    gemm.multiply(y.data, y.ld, z[d].data, z[d].ld, packed.V[d], t.rows, S2, D, d > 0);
  }
}

void BlockCall::set_start(const Tile& t, const View& v, Direction direction) const {
  float* start = saved.z0[direction] + t.sequence * S2;
  const float* given = direction == kForward ? input.initial : input.initial_reverse;
  if (given != nullptr) {
    std::copy_n(given + t.sequence * S2, S2, start);
    return;
  }
  const DiagonalLayer& s = parameters.layer;
  if (s.start_re == nullptr) {
    std::fill_n(start, S2, 0.0f);
    return;
  }
  const float* first = scan_rows(v, t, direction).first;
  std::copy_n(first, S2, saved.first_v[direction] + t.sequence * S2);
  for (size_t i = 0; i < S; ++i) {
    start[i] = s.start_re[i] * first[i] - s.start_im[i] * first[S + i];
    start[S + i] = s.start_re[i] * first[S + i] + s.start_im[i] * first[i];
  }
}

std::vector<double> BlockCall::segment_lambda(const Segment& segment) const {
  const DiagonalLayer& s = parameters.layer;
  std::vector<double> result(S2);
  for (size_t i = 0; i < S; ++i) {
    std::complex<double> product = 1;
    if (s.lambda_stride == 0) {
      std::complex<double> power(s.lambda_re[i], s.lambda_im[i]);
      for (size_t rest = segment.end - segment.begin; rest > 0; rest /= 2) {
        if (rest % 2 == 1) product *= power;
        power *= power;
      }
    } else {
      for (size_t t = segment.begin; t < segment.end; ++t) {
        const size_t at = t * s.lambda_stride + i;
        product *= std::complex<double>(s.lambda_re[at], s.lambda_im[at]);
      }
    }
    result[i] = product.real();
    result[S + i] = product.imag();
  }
  return result;
}

void BlockCall::join_segments(size_t sequence, Direction direction, bool adjoint,
                              const float* local, float* in) const {
  std::vector<Segment> order = plan.segments_of_sequence[sequence];
  if ((direction == kReverse) != adjoint) std::reverse(order.begin(), order.end());
  for (size_t k = 0; k + 1 < order.size(); ++k) {
    // The first segment began with its true state, so its local end is true.
    const float* end = local + order[k].id * S2;
    const float* from = in + order[k].id * S2;
    float* to = in + order[k + 1].id * S2;
    if (k == 0) {
      std::copy_n(end, S2, to);
      continue;
    }
    const std::vector<double> lambda = segment_lambda(order[k]);
    for (size_t i = 0; i < S; ++i) {
      const double re = lambda[i], im = adjoint ? -lambda[S + i] : lambda[S + i];
      to[i] = static_cast<float>(end[i] + re * from[i] - im * from[S + i]);
      to[S + i] = static_cast<float>(end[S + i] + re * from[S + i] + im * from[i]);
    }
  }
}

void BlockCall::add_statistics(const TileStatistics& tile, size_t rows, double* statistics) const {
  const auto count = static_cast<double>(rows);
  statistics[0] += count;
  for (size_t i = 0; i < D; ++i) {
    const double shift = tile.shift[i], sum = tile.sum[i];
    statistics[1 + i] += sum + count * shift;
    statistics[1 + D + i] += tile.square[i] + shift * (2 * sum + count * shift);
  }
}

void BlockCall::set_norm(const double* statistics) {
  std::vector<double> total(statistics, statistics + 1 + 2 * D);
  if (config.reduce) config.reduce(total.data(), total.size());
  saved.count = total[0];
  const double scale = total[0] > 0 ? 1 / total[0] : 0;
  for (size_t i = 0; i < D; ++i) {
    const double mean = total[1 + i] * scale;
    const double variance = std::max(0.0, total[1 + D + i] * scale - mean * mean);
    const double rstd = 1 / std::sqrt(variance + config.eps);
    const double weight = parameters.norm_weight != nullptr ? parameters.norm_weight[i] : 1.0;
    const double bias = parameters.norm_bias != nullptr ? parameters.norm_bias[i] : 0.0;
    saved.mean[i] = mean;
    saved.variance[i] = variance;
    saved.norm_mean[i] = static_cast<float>(mean);
    saved.norm_rstd[i] = static_cast<float>(rstd);
    saved.norm_a[i] = static_cast<float>(weight * rstd);
    saved.norm_c[i] = static_cast<float>(bias - mean * weight * rstd);
  }
}

void BlockCall::set_given_norm() {
  for (size_t i = 0; i < D; ++i) {
    saved.norm_mean[i] = 0;
    saved.norm_rstd[i] = 1;
    saved.norm_a[i] = parameters.norm_weight != nullptr ? parameters.norm_weight[i] : 1.0f;
    saved.norm_c[i] = parameters.norm_bias != nullptr ? parameters.norm_bias[i] : 0.0f;
  }
}

}  // namespace rotrnn::kernels
