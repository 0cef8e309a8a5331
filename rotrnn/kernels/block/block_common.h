#pragma once

#include <chrono>
#include <vector>

#include "rotrnn/kernels/block/block.h"
#include "rotrnn/kernels/simd/simd.h"

/// What block_forward.cpp and block_backward.cpp share. Internal.
namespace rotrnn::kernels {

enum Direction : size_t { kForward = 0, kReverse = 1 };

/// Rows of floats, `ld` apart.
struct View {
  float* data;
  size_t ld;
};

/// Charges the time since the last mark to a stage; does nothing when times is null.
class StageClock {
 public:
  explicit StageClock(double* times) : times_(times) {
    if (times_ != nullptr) last_ = std::chrono::steady_clock::now();
  }
  void mark(Stage stage) {
    if (times_ == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    times_[static_cast<size_t>(stage)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  double* times_;
  std::chrono::steady_clock::time_point last_;
};

/// Charges the life of this to the scan, for all threads: what a sequence layer takes.
class WallClock {
 public:
  WallClock(double* times, int threads) : times_(times), threads_(threads), clock_(&seconds_[0]) {}
  WallClock(const WallClock&) = delete;
  WallClock& operator=(const WallClock&) = delete;
  ~WallClock() {
    if (times_ == nullptr) return;
    clock_.mark(Stage::scan);
    const auto scan = static_cast<size_t>(Stage::scan);
    times_[scan] += threads_ * seconds_[scan];
  }

 private:
  double* times_;
  int threads_;
  double seconds_[static_cast<size_t>(Stage::count)] = {};
  StageClock clock_;
};

/// Tile buffers of one thread. Views have padded strides: weight gradients read them by columns.
struct ThreadBuffers {
  View u, h, y, d, dy, dout, gate, dgate, z[2], dz;
  float* sums;  // per-tile column sums
  TileStatistics statistics;
  double times[static_cast<size_t>(Stage::count)] = {};
};

struct PackedWeights {
  float *W = nullptr, *V[2] = {nullptr, nullptr}, *glu = nullptr;
};

/// The sizes and pointers of one call, and the steps that both passes need.
class BlockCall {
 public:
  BlockCall(const BlockConfig& config, const PackedSequences& sequences,
            const BlockParameters& parameters, const BlockInput& input, BlockSaved& saved,
            Arena& scratch, bool backward);

  size_t directions() const { return config.bidirectional ? 2 : 1; }
  bool glu() const { return G != 0; }
  /// o is y, perhaps masked: nothing of it is kept, its gradient is that of y.
  bool bare() const { return config.activation == Activation::none; }
  bool full() const { return has_value(config.activation); }
  bool normed_branch() const { return config.prenorm && config.norm != Norm::none; }
  bool batch_norm() const { return config.norm == Norm::batch; }
  /// Batch norm over this batch: what needs sums over all tokens.
  bool trains_norm() const { return batch_norm() && config.batch_statistics; }
  bool mixed() const { return config.sequence_layer != nullptr; }
  /// Two passes over each segment: both directions, or carries between segments.
  bool two_pass() const { return config.bidirectional || plan.chunked; }

  const float* mask1(const Tile& t) const { return row_or_null(input.mask1, t.sequence, D); }
  const float* mask2(const Tile& t) const {
    return drops_at_end(config.activation) ? row_or_null(input.mask2, t.sequence, D) : nullptr;
  }
  /// x where it is added to o, else null.
  View residual(const Tile& t) const { return config.residual ? x_tile(t) : View{nullptr, 0}; }
  View x_tile(const Tile& t) const { return {const_cast<float*>(input.x) + t.begin * D, D}; }
  View at(const View& rows, const Tile& t) const {
    return {rows.data + t.begin * rows.ld, rows.ld};
  }

  /// u of a tile: x normalised into the buffer, or x itself.
  View branch_input(const Tile& t, ThreadBuffers& b) const;
  /// u of all tokens, where a sequence layer takes it: x, or written to `to` [n, D].
  const float* whole_input(float* to);
  /// v = W u + b.
  void drive(const Tile& t, const View& u, const View& v) const;
  /// Rows and λ of a tile in the order of a direction.
  ScanRows scan_rows(const View& v, const Tile& t, Direction direction) const;
  ScanLambda scan_lambda(const Tile& t, Direction direction) const;
  /// z before the first row of the tile, in the order of the direction.
  const float* state_before(const Tile& t, Direction direction) const;
  bool starts(const Tile& t, Direction d) const { return d == kForward ? t.first : t.last; }
  bool ends(const Tile& t, Direction d) const { return d == kForward ? t.last : t.first; }
  /// y = V z (+ V_reverse z←).
  void read_out(const Tile& t, const View* z, const View& y) const;
  /// The z_0 of a sequence, from the given state, from start and v, or zero; noted in saved.
  void set_start(const Tile& t, const View& v, Direction direction) const;

  /// λ^length of a segment, or the product of its λ: [2S].
  std::vector<double> segment_lambda(const Segment& segment) const;
  /// in[segment] for the segments of one sequence from their local ends, along `direction` (or
  /// against it, with conj(λ), for adjoints). `begin` [2S] enters the first segment.
  void join_segments(size_t sequence, Direction direction, bool adjoint, const float* local,
                     float* in) const;

  /// Runs f(unit, buffers) for all units on all threads, then adds up the times.
  template <class F>
  void for_units(const F& f);
  /// Runs f(tile) over the tiles of a segment, in time order or against it.
  template <class F>
  void for_tiles(const Segment& segment, bool against, const F& f) const {
    const size_t count = plan.count_tiles(segment);
    for (size_t k = 0; k < count; ++k) {
      f(plan.tile_at(sequences, segment, against ? count - 1 - k : k));
    }
  }

  /// From sums over all tokens to mean, variance and the affine of the norm.
  void set_norm(const double* statistics);
  /// The affine that norm_weight and norm_bias are, or identity where they are null.
  void set_given_norm();
  void add_statistics(const TileStatistics& tile, size_t rows, double* statistics) const;

  const BlockConfig& config;
  const PackedSequences& sequences;
  const BlockParameters& parameters;
  const BlockInput& input;
  BlockSaved& saved;
  Arena& scratch;
  const Table& simd;
  const Gemm& gemm;
  size_t D, S, S2, G, n;
  int threads;
  Plan plan;
  PackedWeights packed, packed_back;  // B = Wᵀ for forward products, B = W for gradients
  std::vector<ThreadBuffers> buffers;
  double* times;

 private:
  static const float* row_or_null(const float* p, size_t row, size_t width) {
    return p == nullptr ? nullptr : p + row * width;
  }
  /// Rows of x through the norm before the branch.
  void normalise(size_t begin, size_t rows, const View& u) const;
  float* pack(const float* b, size_t K, size_t N, bool transposed);
  PackedWeights pack_weights(bool backward);
  void take_buffers(bool backward);
};

void run_units(BlockCall& call, const std::function<void(size_t, ThreadBuffers&)>& f);

template <class F>
void BlockCall::for_units(const F& f) {
  run_units(*this, f);
}

size_t glu_width(const BlockConfig& config);

}  // namespace rotrnn::kernels
