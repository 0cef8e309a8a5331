#pragma once

#include <span>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/network/batches/packed.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/spec/data_shape.h"

namespace rotrnn {

/// The front end of a network for that data, resolved. std::invalid_argument where it cannot be:
/// texts, or an output for every step.
FrontendOptions frontend_of(const ModelOptions& options, const DataShape& shape);

/// Adds its tensors: θ and log(-log γ), mean and deviation of every band.
void add_frontend_tensors(const FrontendOptions& options, int64_t channels, TensorSpecs& out);

/// Sets them: θ and γ by the options, mean 0 and deviation 1.
void set_frontend(const FrontendOptions& options, Weights& weights);

/// Tokens of the longest sequence of a packed batch of samples.
int64_t longest_tokens(const FrontendOptions& options, std::span<const int64_t> offsets);

/// Turns packed samples into packed tokens, with the memory for it. Options are resolved.
class Frontend {
 public:
  struct Input {
    const FrontendOptions& options;
    size_t channels = 1;
    Weights& weights;
    PackedInput batch;      // of samples
    bool backward = false;  // keep what backward needs; samples and weights stay where they are
    bool raw = false;       // without mean and deviation: to learn them
    int threads = 1;
  };

  /// The tokens, valid until the next call; the batch as it is where there is no front end.
  PackedInput forward(const Input& input);

  /// From the gradient of the tokens to that of its parameters, if they are trained, and to that of
  /// the samples, if `dvalues` is not null.
  void backward(const Input& input, const float* dtokens, FlatArray& out, float* dvalues);

 private:
  std::vector<int64_t> offsets_;
  kernels::Arena memory_, scratch_;
  float *tokens_ = nullptr, *kept_ = nullptr;
};

}  // namespace rotrnn
