#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rotrnn/onnx/graph.h"
#include "rotrnn/runtime/packed_model.h"

namespace rotrnn {

/// An exported model (docs/deploy.md) as the parts that a graph is made from. The runtime has read
/// it before, so everything is there and fits.
class OnnxSource {
 public:
  /// std::runtime_error, with `where` for the path, unless these are the bytes of such a model.
  OnnxSource(std::string bytes, const std::string& where);

  const runtime::ModelInfo& info() const { return model_->info(); }
  const ModelFile& file() const { return model_->packed().file; }
  const Preprocessing& preprocessing() const { return model_->packed().preprocessing; }
  /// Why there are no graphs with states; empty when there are.
  std::string whole_only() const;

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// The numbers of a tensor.
  std::vector<float> numbers(const std::string& name) const;
  /// A tensor in the graph, under its own name.
  OnnxValue tensor(OnnxGraph& graph, const std::string& name) const;

 private:
  struct Tensor {
    Numbers numbers;
    std::vector<int64_t> shape;
  };

  std::shared_ptr<const runtime::Model> model_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace rotrnn
