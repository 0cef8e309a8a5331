#include "rotrnn/onnx/source.h"

#include <cstring>

namespace rotrnn {

OnnxSource::OnnxSource(std::string bytes, const std::string& where)
    : model_(runtime::Model::from_bytes(bytes, where)),
      file_(SafeTensorFile::from_bytes(std::move(bytes), where)),
      facts_(nlohmann::json::parse(file_.metadata().at("model"))) {}

std::vector<float> OnnxSource::numbers(const std::string& name) const {
  const SafeTensor& tensor = file_.at(name);
  std::vector<float> out(tensor.data.size() / sizeof(float));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

OnnxValue OnnxSource::tensor(OnnxGraph& graph, const std::string& name) const {
  return graph.tensor(name, file_.at(name).shape, numbers(name));
}

}  // namespace rotrnn
