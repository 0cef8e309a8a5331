#include "rotrnn/onnx/system.h"

namespace rotrnn {
namespace {

OnnxValue reshaped(OnnxGraph& g, const OnnxValue& x, const OnnxValue& shape) {
  return g.add("Reshape", {x, shape});
}

std::vector<int64_t> with_front(int64_t front, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out{front};
  out.insert(out.end(), sizes.begin(), sizes.end());
  return out;
}

}  // namespace

OnnxValue OnnxFrame::by_time(OnnxGraph& g, const OnnxValue& rows,
                             const std::vector<int64_t>& sizes) const {
  const OnnxValue shape =
      g.add("Concat", {g.integers({-1}), batch, g.integers(sizes)}, {{"axis", int64_t{0}}});
  return reshaped(g, rows, shape);
}

OnnxValue OnnxFrame::by_row(OnnxGraph& g, const OnnxValue& x, const std::vector<int64_t>& sizes) {
  return reshaped(g, x, g.integers(with_front(-1, sizes)));
}

OnnxValue onnx_linear(OnnxGraph& g, const OnnxValue& x, const OnnxValue& weight,
                      const OnnxValue& bias) {
  std::vector<OnnxValue> inputs{x, weight};
  if (!bias.empty()) inputs.push_back(bias);
  return g.add("Gemm", inputs, {{"transB", int64_t{1}}});
}

int64_t onnx_state_size(const OnnxSource& source) {
  const runtime::ModelInfo& info = source.info();
  if (info.system == "diagonal") return 2 * info.states;
  return 2 * info.width * info.states + (info.degree - 1) * info.width;
}

}  // namespace rotrnn
