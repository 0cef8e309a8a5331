#include "rotrnn/onnx/branch.h"

#include "rotrnn/onnx/system.h"

namespace rotrnn {
namespace {

OnnxValue exact_gelu(OnnxGraph& g, const OnnxValue& y) {
  const OnnxValue erf = g.add("Erf", {g.add("Div", {y, g.number(1.4142135623730951f)})});
  const OnnxValue product = g.add("Mul", {y, g.add("Add", {erf, g.number(1)})});
  return g.add("Mul", {product, g.number(0.5f)});
}

}  // namespace

OnnxValue onnx_map(OnnxGraph& g, const OnnxSource& source, const std::string& name,
                   const OnnxValue& x) {
  const OnnxValue weight = source.tensor(g, name + ".weight");
  return onnx_linear(g, x, weight, source.tensor(g, name + ".bias"));
}

OnnxValue onnx_norm(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                    const OnnxValue& x) {
  const Norm kind = source.file().norm;
  if (kind == Norm::none) return x;
  const OnnxValue scale = source.tensor(g, at + "norm.scale");
  const OnnxValue shift = source.tensor(g, at + "norm.shift");
  if (kind == Norm::batch) return g.add("Add", {g.add("Mul", {x, scale}), shift});
  return g.add("LayerNormalization", {x, scale, shift},
               {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}});
}

// In the very form that ONNX Runtime knows and runs as one node.
OnnxValue onnx_gelu(OnnxGraph& g, const OnnxValue& y) {
  const OnnxValue cube = g.add("Mul", {g.add("Pow", {y, g.number(3)}), g.number(0.044715f)});
  const OnnxValue inner = g.add("Mul", {g.add("Add", {y, cube}), g.number(0.7978845608028654f)});
  const OnnxValue share = g.add("Add", {g.add("Tanh", {inner}), g.number(1)});
  return g.add("Mul", {g.add("Mul", {y, g.number(0.5f)}), share});
}

namespace {

OnnxValue onnx_curve(OnnxGraph& g, Curve curve, const OnnxValue& y) {
  switch (curve) {
    case Curve::gelu:
      return onnx_gelu(g, y);
    case Curve::exact_gelu:
      break;
  }
  return exact_gelu(g, y);
}

}  // namespace

OnnxValue onnx_activation(OnnxGraph& g, const OnnxSource& source, const std::string& at,
                          const OnnxValue& y) {
  const Activation kind = source.file().activation;
  const OnnxValue h = onnx_curve(g, curve(kind), y);
  if (!has_gate(kind)) return h;
  const OnnxValue gate = g.add("Sigmoid", {onnx_map(g, source, at + "gate", h)});
  const OnnxValue value = has_value(kind)                ? onnx_map(g, source, at + "value", h)
                          : gated(kind) == Gated::hidden ? h
                                                         : y;
  return g.add("Mul", {value, gate});
}

}  // namespace rotrnn
