#pragma once

#include <vector>

#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/training/optimiser.h"

namespace rotrnn {

/// Parameters and buffers by name, as a file has them; valid as long as the weights are.
std::vector<NamedTensor> tensors_of(const Weights& weights);

/// The moments of all parameters by name.
std::vector<NamedTensor> tensors_of(const WeightLayout& layout, const Optimiser& optimiser);

/// Takes the tensors of a file over, which must be of the same names, types and shapes:
/// std::runtime_error says which is not, and then nothing is changed.
void load_weights(const SafeTensorFile& file, Weights& weights);
void load_moments(const SafeTensorFile& file, const WeightLayout& layout, Optimiser& optimiser);

}  // namespace rotrnn
