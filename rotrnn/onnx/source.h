#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/onnx/graph.h"
#include "rotrnn/runtime/network.h"

namespace rotrnn {

/// A folded model (docs/deploy.md) as the parts that a graph is made from. It has been read
/// by the runtime before, so everything is there and fits.
class OnnxSource {
 public:
  /// std::runtime_error, with `where` for the path, unless these are the bytes of a folded model.
  OnnxSource(std::string bytes, const std::string& where);

  const runtime::ModelInfo& info() const { return model_->info(); }
  const Preprocessing& preprocessing() const { return model_->network().preprocessing; }
  /// Why there are no graphs with states; empty when there are.
  std::string whole_only() const { return model_->network().whole_only(); }
  const nlohmann::json& facts() const { return facts_; }

  bool has(const std::string& name) const { return file_.contains(name); }
  /// The numbers of a tensor.
  std::vector<float> numbers(const std::string& name) const;
  /// A tensor in the graph, under its own name.
  OnnxValue tensor(OnnxGraph& graph, const std::string& name) const;

 private:
  std::shared_ptr<const runtime::Model> model_;
  SafeTensorFile file_;
  nlohmann::json facts_;
};

}  // namespace rotrnn
