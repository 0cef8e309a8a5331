#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rotrnn {

/// The numbers of a tensor in an ONNX graph.
enum class OnnxType { f32, f64, i64 };

/// A size that is known, or the name of one that callers choose.
using OnnxSize = std::variant<int64_t, std::string>;
using OnnxShape = std::vector<OnnxSize>;

/// The name of a tensor in a graph.
using OnnxValue = std::string;

/// Attributes of a node.
using OnnxAttribute = std::pair<std::string, std::variant<int64_t, float, std::vector<int64_t>>>;
using OnnxAttributes = std::vector<OnnxAttribute>;

/// An ONNX graph that grows node by node. The only user of libonnx and protobuf.
class OnnxGraph {
 public:
  explicit OnnxGraph(const std::string& name);
  ~OnnxGraph();
  OnnxGraph(OnnxGraph&&) noexcept;
  OnnxGraph& operator=(OnnxGraph&&) noexcept;

  /// A graph for the body of a loop; it may use the values of this one.
  OnnxGraph body(const std::string& name) const;

  /// Nodes from here on have names that begin with this.
  void place(const std::string& prefix);

  OnnxValue input(const std::string& name, OnnxType type, const OnnxShape& shape,
                  const std::string& text = {});
  void output(const OnnxValue& value, OnnxType type, const OnnxShape& shape,
              const std::string& text = {});

  /// Constants. Those with a name appear under it.
  OnnxValue tensor(const std::string& name, const std::vector<int64_t>& shape,
                   std::span<const float> numbers);
  OnnxValue number(float x);
  OnnxValue real(double x);
  OnnxValue integer(int64_t x);
  OnnxValue integers(const std::vector<int64_t>& list);

  /// A node with one output, which is returned; `name` where others refer to it.
  OnnxValue add(const std::string& op, const std::vector<OnnxValue>& inputs,
                const OnnxAttributes& attributes = {}, const std::string& name = {});
  /// A node with several.
  std::vector<OnnxValue> add_several(const std::string& op, const std::vector<OnnxValue>& inputs,
                                     size_t outputs, const OnnxAttributes& attributes = {});
  OnnxValue cast(const OnnxValue& x, OnnxType type);
  /// A tensor of zeros whose shape is a value.
  OnnxValue zeros(const OnnxValue& shape, OnnxType type);

  /// Runs `step` over time, which is the first axis of every one of `sequences`: its inputs are
  /// `states` and a slice of each sequence, its outputs the next states and slices of the results.
  /// Sequences and their results run backwards where `backwards` says so, one flag per
  /// sequence; every sequence has one result. Returns the last states, then the results.
  std::vector<OnnxValue> scan(OnnxGraph step, const std::vector<OnnxValue>& states,
                              const std::vector<OnnxValue>& sequences,
                              const std::vector<int64_t>& backwards);

  /// The whole as the bytes of a model file, after ONNX's checker has seen it. `facts` become its
  /// metadata. std::runtime_error when a file cannot hold it.
  std::string model_bytes(const std::vector<std::pair<std::string, std::string>>& facts,
                          const std::string& text) &&;

 private:
  struct Impl;
  OnnxGraph(const OnnxGraph& outer, const std::string& name);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rotrnn
