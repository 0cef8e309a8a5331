// The backward pass of a block: block_backward.cpp walks the tiles, block_gradients.cpp adds up
// what the units have gathered.
#pragma once

#include <algorithm>

#include "rotrnn/kernels/block/block_common.h"

namespace rotrnn::kernels {

/// Gradients of one unit. Weights in float, one product per tile; sums over tokens in double.
struct UnitSums {
  float *W, *V[2], *glu;
  bool wrote_output = false, wrote_input = false;  // the first product overwrites
  double *glu_bias, *D, *e, *norm_sum, *norm_product, *b, *lambda, *start;
};

class BlockBackward : public BlockCall {
 public:
  BlockBackward(const BlockConfig& config, const PackedSequences& sequences,
                const BlockParameters& parameters, const BlockInput& input, BlockSaved& saved,
                const OutputGradient& gradient, const BlockGradients& gradients, Arena& scratch);
  void run();

 private:
  // The gradient of x + o of a tile, through a pending and a postnorm.
  View output_gradient(const Tile& t, ThreadBuffers& b, UnitSums* sums);
  void postnorm_sums();

  void states(const Tile& t, const View& u, ThreadBuffers& b, View* z);
  void states_again(const Tile& t, const View& u, ThreadBuffers& b, View* z);
  void recompute_output(const Tile& t, const View& u, const View* z, ThreadBuffers& b);
  void activation_backward(const Tile& t, const View& u, const View& dout, const View* z,
                           ThreadBuffers& b, UnitSums& sums);
  void branch_backward(const Tile& t, const View& u, const View& dout, const View* z,
                       ThreadBuffers& b, UnitSums& sums);
  void state_gradient(const Tile& t, const View& dy, Direction direction, const View& dz);
  void adjoint_tile(const Tile& t, const View& g, const View& z, Direction direction, float* carry,
                    UnitSums& sums);
  void start_gradient(const Tile& t, const View& g, Direction direction, const float* carry,
                      UnitSums& sums);
  void begin_carry(const Tile& t, Direction direction, float* carry) const;
  void input_backward(const Tile& t, const View& u, const View& g, const View& dout, const View& dy,
                      ThreadBuffers& b, UnitSums& sums);
  void norm_backward(const Tile& t, const View& du, const View& dout, const View& dy,
                     ThreadBuffers& b, UnitSums& sums);

  bool dy_is_dout() const { return bare() && input.mask2 == nullptr; }
  void whole_sequences();
  void output_pass();
  void input_pass();
  void sequence_layer_pass();
  void local_adjoints(const Segment& segment);

  void empty_sequences();
  void sum_weights();
  void sum_vectors();
  void finish_norm();
  double total(double* UnitSums::*member, size_t i) const;
  float* carry_of(const ThreadBuffers& b) {
    return carries_.data() + static_cast<size_t>(&b - buffers.data()) * S2;
  }
  double* clock_times(ThreadBuffers& b) { return times == nullptr ? nullptr : b.times; }

  const OutputGradient& gradient_;
  BlockGradients gradients_;
  std::vector<UnitSums> sums_;
  float *u_ = nullptr, *y_ = nullptr, *du_ = nullptr;  // [n, D], of a sequence layer
  std::vector<float> carries_;                         // [threads, 2S]
  View dz_[2] = {};                                    // [n], two passes only
  View z_[2] = {};                                     // [n], states that both passes need
  std::vector<float> local_[2];                        // as in forward, for the adjoints
  std::vector<float> carry_[2];
  std::vector<float> post_q_, post_s_;  // postnorm: gradient = a⊙dout + q⊙raw + s
};

/// Adds the column sums of a tile and clears them.
inline void flush(float* tile, double* sum, size_t n) {
  for (size_t i = 0; i < n; ++i) sum[i] += static_cast<double>(tile[i]);
  std::fill_n(tile, n, 0.0f);
}

}  // namespace rotrnn::kernels
