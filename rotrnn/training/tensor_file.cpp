#include "rotrnn/training/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rotrnn {
namespace {

struct TypePair {
  Dtype file;
  torch::ScalarType torch;
};
constexpr TypePair kTypes[] = {
    {Dtype::f32, torch::kFloat32}, {Dtype::f64, torch::kFloat64}, {Dtype::i32, torch::kInt32},
    {Dtype::i64, torch::kInt64},   {Dtype::u8, torch::kUInt8},
};

Dtype file_type(torch::ScalarType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.torch == type) return pair.file;
  }
  throw std::invalid_argument(
      fmt::format("safetensors: tensors of type {} are not written", torch::toString(type)));
}

torch::ScalarType torch_type(Dtype type) {
  for (const TypePair& pair : kTypes) {
    if (pair.file == type) return pair.torch;
  }
  throw std::runtime_error(
      fmt::format("safetensors: tensors of type {} are not read here", dtype_name(type)));
}

}  // namespace

TensorBytes::TensorBytes(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    keep.push_back(tensor.detach().cpu().contiguous());
    const torch::Tensor& t = keep.back();
    const auto* bytes = static_cast<const std::byte*>(t.data_ptr());
    views.push_back({name, {file_type(t.scalar_type()), t.sizes().vec(), {bytes, t.nbytes()}}});
  }
}

void save_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                  const SafeTensorMetadata& metadata) {
  write_safetensors(file, TensorBytes(tensors).views, metadata);
}

torch::Tensor to_tensor(const SafeTensor& tensor) {
  torch::Tensor out = torch::empty(tensor.shape, torch_type(tensor.dtype));
  if (!tensor.data.empty()) std::memcpy(out.data_ptr(), tensor.data.data(), tensor.data.size());
  return out;
}

void load_tensors(const SafeTensorFile& source, const NamedTensors& targets) {
  for (const auto& [name, target] : targets) {
    const SafeTensor& found = source.at(name);
    if (found.shape != target.sizes().vec()) {
      throw std::runtime_error(fmt::format(
          "{}: tensor \"{}\" has shape [{}], expected [{}]; the file belongs to "
          "another model",
          source.where(), name, fmt::join(found.shape, ", "), fmt::join(target.sizes(), ", ")));
    }
  }
  for (const std::string& name : source.names()) {
    if (std::none_of(targets.begin(), targets.end(), [&](auto& t) { return t.first == name; })) {
      throw std::runtime_error(fmt::format(
          "{}: unexpected tensor \"{}\"; the file belongs to another model", source.where(), name));
    }
  }
  torch::NoGradGuard no_grad;
  for (const auto& [name, target] : targets) {
    torch::Tensor alias = target;
    alias.copy_(to_tensor(source.at(name)));
  }
}

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& entry : module.named_parameters()) tensors.emplace_back(entry.pair());
  for (const auto& entry : module.named_buffers()) tensors.emplace_back(entry.pair());
  return tensors;
}

}  // namespace rotrnn
