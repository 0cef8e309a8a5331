#include "rotrnn/network/fused/fused_system.h"

namespace rotrnn {

kernels::DiagonalLayer fused_layer(const Description<float>& description) {
  kernels::DiagonalLayer out;
  if (const auto* channel = std::get_if<Channel<float>>(&description)) {
    out.D = channel->D.data();
  } else {
    point_to(std::get<Diagonal<float>>(description), out);
  }
  return out;
}

void set_gradient(const Description<float>& like, Description<float>& gradient,
                  kernels::BlockGradients& out) {
  if (const auto* channel = std::get_if<Channel<float>>(&like)) {
    if (!std::holds_alternative<Channel<float>>(gradient)) gradient = Channel<float>();
    auto& to = std::get<Channel<float>>(gradient);
    to.D.resize(channel->D.size());
    out.layer.D = to.D.data();
    return;
  }
  if (!std::holds_alternative<Diagonal<float>>(gradient)) gradient = Diagonal<float>();
  auto& to = std::get<Diagonal<float>>(gradient);
  size_like(std::get<Diagonal<float>>(like), to);
  point_to(to, out.layer);
}

}  // namespace rotrnn
