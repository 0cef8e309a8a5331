#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rotrnn/io/safetensors.h"

namespace rotrnn {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// Tensors as the bytes that a file has of them; valid as long as this lives.
struct TensorBytes {
  explicit TensorBytes(const NamedTensors& tensors);
  std::vector<NamedTensor> views;
  std::vector<torch::Tensor> keep;  // what they look at
};

/// Writes tensors as safetensors.
void save_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                  const SafeTensorMetadata& metadata = {});

/// Copies the tensors of a file into `targets`, which must be the same names and shapes; nothing
/// is changed unless all fit.
void load_tensors(const SafeTensorFile& source, const NamedTensors& targets);

/// Parameters and buffers of a module by name.
NamedTensors state_of(const torch::nn::Module& module);

/// One tensor of a file as a copy in memory of its own.
torch::Tensor to_tensor(const SafeTensor& tensor);

}  // namespace rotrnn
