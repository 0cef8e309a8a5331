#include "rotrnn/onnx/source.h"

#include <stdexcept>
#include "rotrnn/onnx/frontend.h"

namespace rotrnn {

OnnxSource::OnnxSource(std::string bytes, const std::string& where)
    : model_(runtime::Model::from_bytes(std::move(bytes), where)) {
  if (file().features) {
    throw std::invalid_argument(
        where +
        ": a fitted model has no graph; export it without --format onnx, and run it by the "
        "runtime (C++, C, Python, rotrnn stream)");
  }
  ModelFile::each_tensor(file(), [this](const std::string& name, Numbers numbers,
                                        const std::vector<int64_t>& shape, bool) {
    if (!numbers.empty()) tensors_[name] = {numbers, shape};
  });
}

std::string OnnxSource::whole_only() const {
  const std::string why = model_->packed().whole_only();
  return why.empty() ? onnx_frontend(file()).whole_only() : why;
}

std::vector<float> OnnxSource::numbers(const std::string& name) const {
  const Numbers& numbers = tensors_.at(name).numbers;
  return {numbers.begin(), numbers.end()};
}

OnnxValue OnnxSource::tensor(OnnxGraph& graph, const std::string& name) const {
  const Tensor& tensor = tensors_.at(name);
  return graph.tensor(name, tensor.shape, tensor.numbers);
}

}  // namespace rotrnn
