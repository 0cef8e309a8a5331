#include "rotrnn/network/fused/fused_system.h"

namespace rotrnn {
namespace {

template <class Vector>
auto* data_of(Vector& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

kernels::System fused_system(const Description<float>& description) {
  kernels::System out;
  if (const auto* channel = std::get_if<Channel<float>>(&description)) {
    out.D = data_of(channel->D);
    return out;
  }
  const auto& s = std::get<Diagonal<float>>(description);
  out.lambda_re = s.lambda_re.data();
  out.lambda_im = s.lambda_im.data();
  out.W = s.W.data();
  out.V = s.V.data();
  out.V_reverse = data_of(s.V_reverse);
  out.D = data_of(s.D);
  out.b = data_of(s.b);
  out.e = data_of(s.e);
  out.kappa_re = data_of(s.start_re);
  out.kappa_im = data_of(s.start_im);
  return out;
}

void set_gradient(const Description<float>& like, Description<float>& gradient,
                  kernels::BlockGradients& out) {
  if (const auto* channel = std::get_if<Channel<float>>(&like)) {
    if (!std::holds_alternative<Channel<float>>(gradient)) gradient = Channel<float>();
    auto& to = std::get<Channel<float>>(gradient);
    to.D.resize(channel->D.size());
    out.D = data_of(to.D);
    return;
  }
  if (!std::holds_alternative<Diagonal<float>>(gradient)) gradient = Diagonal<float>();
  const auto& s = std::get<Diagonal<float>>(like);
  auto& to = std::get<Diagonal<float>>(gradient);
  to.width = s.width, to.states = s.states;
  std::vector<size_t> sizes;
  s.each([&](const char*, const std::vector<float>& v, auto) { sizes.push_back(v.size()); });
  auto size = sizes.begin();
  to.each([&](const char*, std::vector<float>& v, auto) { v.resize(*size++); });
  out.lambda_re = to.lambda_re.data();
  out.lambda_im = to.lambda_im.data();
  out.W = to.W.data();
  out.V = to.V.data();
  out.V_reverse = data_of(to.V_reverse);
  out.D = data_of(to.D);
  out.b = data_of(to.b);
  out.e = data_of(to.e);
  out.kappa_re = data_of(to.start_re);
  out.kappa_im = data_of(to.start_im);
}

}  // namespace rotrnn
