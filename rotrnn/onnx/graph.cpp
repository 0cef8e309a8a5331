#include "rotrnn/onnx/graph.h"

#include <fmt/format.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>

#include "rotrnn/version.h"

namespace rotrnn {
namespace {

// What libonnx 1.12 knows, and every ONNX Runtime since 1.12: LayerNormalization came with it.
constexpr int64_t kOperators = 17, kIrVersion = 8;

int element_type(OnnxType type) {
  switch (type) {
    case OnnxType::f32:
      return onnx::TensorProto::FLOAT;
    case OnnxType::f64:
      return onnx::TensorProto::DOUBLE;
    case OnnxType::i64:
      return onnx::TensorProto::INT64;
  }
  return onnx::TensorProto::UNDEFINED;
}

void describe(onnx::ValueInfoProto& info, const std::string& name, OnnxType type,
              const OnnxShape& shape, const std::string& text) {
  info.set_name(name);
  if (!text.empty()) info.set_doc_string(text);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(element_type(type));
  auto* dims = tensor->mutable_shape();
  for (const OnnxSize& size : shape) {
    auto* dim = dims->add_dim();
    if (const auto* known = std::get_if<int64_t>(&size)) {
      dim->set_dim_value(*known);
    } else {
      dim->set_dim_param(std::get<std::string>(size));
    }
  }
}

void set_attribute(onnx::AttributeProto& to, const OnnxAttribute& from) {
  to.set_name(from.first);
  if (const auto* number = std::get_if<int64_t>(&from.second)) {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&from.second)) {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(*real);
  } else {
    to.set_type(onnx::AttributeProto::INTS);
    for (const int64_t x : std::get<std::vector<int64_t>>(from.second)) to.add_ints(x);
  }
}

template <typename T>
void fill(onnx::TensorProto& to, const std::string& name, OnnxType type,
          const std::vector<int64_t>& shape, std::span<const T> numbers) {
  to.set_name(name);
  to.set_data_type(element_type(type));
  for (const int64_t size : shape) to.add_dims(size);
  to.set_raw_data(numbers.data(), numbers.size_bytes());
}

}  // namespace

struct OnnxGraph::Impl {
  onnx::GraphProto proto;
  std::string prefix;
  std::map<std::string, int> used;  // how often a name was requested
  std::map<std::string, OnnxValue> constants;

  std::string fresh(const std::string& name) {
    const int count = used[name]++;
    return count == 0 ? name : fmt::format("{}_{}", name, count + 1);
  }

  // A small constant, once a graph.
  template <typename T>
  OnnxValue constant(OnnxType type, const std::vector<int64_t>& shape, std::span<const T> numbers) {
    std::string key = fmt::format("{}:{}:", static_cast<int>(type), shape.size());
    key.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    const auto found = constants.find(key);
    if (found != constants.end()) return found->second;
    const std::string name = fresh(proto.name() + ".constant");
    fill(*proto.add_initializer(), name, type, shape, numbers);
    return constants[key] = name;
  }
};

OnnxGraph::OnnxGraph(const std::string& name) : impl_(std::make_unique<Impl>()) {
  impl_->proto.set_name(name);
}

OnnxGraph::OnnxGraph(const OnnxGraph& outer, const std::string& name) : OnnxGraph(name) {
  impl_->prefix = outer.impl_->prefix + name + ".";
  impl_->proto.set_name(outer.impl_->prefix + name);
}

OnnxGraph::~OnnxGraph() = default;
OnnxGraph::OnnxGraph(OnnxGraph&&) noexcept = default;
OnnxGraph& OnnxGraph::operator=(OnnxGraph&&) noexcept = default;

OnnxGraph OnnxGraph::body(const std::string& name) const {
  return OnnxGraph(*this, name);
}

void OnnxGraph::place(const std::string& prefix) {
  impl_->prefix = prefix;
}

OnnxValue OnnxGraph::input(const std::string& name, OnnxType type, const OnnxShape& shape,
                           const std::string& text) {
  describe(*impl_->proto.add_input(), name, type, shape, text);
  return name;
}

void OnnxGraph::output(const OnnxValue& value, OnnxType type, const OnnxShape& shape,
                       const std::string& text) {
  describe(*impl_->proto.add_output(), value, type, shape, text);
}

OnnxValue OnnxGraph::tensor(const std::string& name, const std::vector<int64_t>& shape,
                            std::span<const float> numbers) {
  fill(*impl_->proto.add_initializer(), name, OnnxType::f32, shape, numbers);
  return name;
}

OnnxValue OnnxGraph::number(float x) {
  return impl_->constant<float>(OnnxType::f32, {}, std::span(&x, 1));
}

OnnxValue OnnxGraph::real(double x) {
  return impl_->constant<double>(OnnxType::f64, {}, std::span(&x, 1));
}

OnnxValue OnnxGraph::integer(int64_t x) {
  return impl_->constant<int64_t>(OnnxType::i64, {}, std::span(&x, 1));
}

OnnxValue OnnxGraph::integers(const std::vector<int64_t>& list) {
  return impl_->constant<int64_t>(OnnxType::i64, {std::ssize(list)}, list);
}

OnnxValue OnnxGraph::add(const std::string& op, const std::vector<OnnxValue>& inputs,
                         const OnnxAttributes& attributes, const std::string& name) {
  const OnnxValue out = add_several(op, inputs, 1, attributes)[0];
  if (name.empty()) return out;
  impl_->proto.mutable_node(impl_->proto.node_size() - 1)->set_output(0, name);
  return name;
}

std::vector<OnnxValue> OnnxGraph::add_several(const std::string& op,
                                              const std::vector<OnnxValue>& inputs, size_t outputs,
                                              const OnnxAttributes& attributes) {
  onnx::NodeProto& node = *impl_->proto.add_node();
  const std::string name = impl_->fresh(impl_->prefix + op);
  node.set_op_type(op);
  node.set_name(name);
  for (const OnnxValue& input : inputs) node.add_input(input);
  for (const OnnxAttribute& attribute : attributes) {
    set_attribute(*node.add_attribute(), attribute);
  }
  std::vector<OnnxValue> values;
  for (size_t i = 0; i < outputs; ++i) {
    values.push_back(outputs == 1 ? name : fmt::format("{}.{}", name, i));
    node.add_output(values.back());
  }
  return values;
}

OnnxValue OnnxGraph::cast(const OnnxValue& x, OnnxType type) {
  return add("Cast", {x}, {{"to", int64_t{element_type(type)}}});
}

OnnxValue OnnxGraph::zeros(const OnnxValue& shape, OnnxType type) {
  const OnnxValue out = add("ConstantOfShape", {shape});
  onnx::AttributeProto& value =
      *impl_->proto.mutable_node(impl_->proto.node_size() - 1)->add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  constexpr double kZero = 0;  // its first bytes are a zero of every type
  const size_t size = type == OnnxType::f32 ? 4 : 8;
  fill(*value.mutable_t(), "", type, {1}, std::span(reinterpret_cast<const char*>(&kZero), size));
  return out;
}

std::vector<OnnxValue> OnnxGraph::scan(OnnxGraph step, const std::vector<OnnxValue>& states,
                                       const std::vector<OnnxValue>& sequences,
                                       const std::vector<int64_t>& backwards) {
  std::vector<OnnxValue> inputs = states;
  inputs.insert(inputs.end(), sequences.begin(), sequences.end());
  const auto outputs = add_several("Scan", inputs, states.size() + sequences.size(),
                                   {{"num_scan_inputs", std::ssize(sequences)},
                                    {"scan_input_directions", backwards},
                                    {"scan_output_directions", backwards}});
  onnx::AttributeProto& body =
      *impl_->proto.mutable_node(impl_->proto.node_size() - 1)->add_attribute();
  body.set_name("body");
  body.set_type(onnx::AttributeProto::GRAPH);
  *body.mutable_g() = std::move(step.impl_->proto);
  return outputs;
}

std::string OnnxGraph::model_bytes(const std::vector<std::pair<std::string, std::string>>& facts,
                                   const std::string& text) && {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("rotrnn");
  model.set_producer_version(kVersion);
  model.set_doc_string(text);
  auto* operators = model.add_opset_import();
  operators->set_domain("");
  operators->set_version(kOperators);
  for (const auto& [key, value] : facts) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  *model.mutable_graph() = std::move(impl_->proto);
  if (model.ByteSizeLong() > std::numeric_limits<int32_t>::max()) {
    throw std::runtime_error(
        fmt::format("an ONNX file holds at most 2 GB, this model is {:.1f}; use --format "
                    "safetensors",
                    static_cast<double>(model.ByteSizeLong()) / 1e9));
  }
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& error) {
    throw std::logic_error(fmt::format("the ONNX graph is not valid: {}", error.what()));
  }
  return model.SerializeAsString();
}

}  // namespace rotrnn
