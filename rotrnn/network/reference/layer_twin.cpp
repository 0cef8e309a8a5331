#include "rotrnn/network/reference/layer_twin.h"

#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/kernels/oracle/convolution_reference.h"

namespace rotrnn {
namespace {

namespace twins = kernels::reference;

template <class T>
twins::ChannelValues<T> channel_values(const Channel<T>& c, const std::vector<T>& u,
                                       const TwinStatesOf<T>& initial) {
  twins::ChannelValues<T> v;
  v.u = u;
  v.lambda_re = c.lambda_re, v.lambda_im = c.lambda_im;
  v.c_re = c.c_re, v.c_im = c.c_im;
  v.c_reverse_re = c.c_reverse_re, v.c_reverse_im = c.c_reverse_im;
  v.initial = initial.forward, v.initial_reverse = initial.reverse;
  return v;
}

}  // namespace

template <class T>
void set_system(const Description<T>& description, twins::BlockValues<T>& v) {
  if (const auto* s = std::get_if<Diagonal<T>>(&description)) {
    v.lambda_re = s->lambda_re, v.lambda_im = s->lambda_im;
    v.W = s->W, v.V = s->V, v.V_reverse = s->V_reverse;
    v.D = s->D, v.b = s->b, v.e = s->e;
    v.kappa_re = s->start_re, v.kappa_im = s->start_im;
  } else {
    v.D = std::get<Channel<T>>(description).D;
  }
}

template <class T>
Description<T> system_of(const Description<T>& like, const twins::BlockValues<T>& g) {
  Diagonal<T> s = std::get<Diagonal<T>>(like);
  s.lambda_re = g.lambda_re, s.lambda_im = g.lambda_im;
  s.W = g.W, s.V = g.V, s.V_reverse = g.V_reverse;
  s.D = g.D, s.b = g.b, s.e = g.e;
  s.start_re = g.kappa_re, s.start_im = g.kappa_im;
  return s;
}

template <class T>
twins::LayerTwin<T> channel_twin(const Channel<T>& c, const kernels::Sequences& sequences,
                                 const ChannelTwinStates<T>& states) {
  const auto D = static_cast<size_t>(c.width), N = static_cast<size_t>(c.states);
  twins::LayerTwin<T> out;
  if (!c.K.empty()) {
    out.forward = [=, &c](const std::vector<T>& u) {
      return twins::convolution_forward<T>(sequences, D, c.kind, {u, c.K, c.K_reverse, c.products});
    };
    out.backward = [=, &c](const std::vector<T>& u, const std::vector<T>& dy) {
      const auto g = twins::convolution_backward<T>(sequences, D, c.kind,
                                                    {u, c.K, c.K_reverse, c.products}, dy);
      Channel<T> to = c;
      to.K = g.K, to.K_reverse = g.K_reverse, to.products = g.products;
      *states.gradient = std::move(to);
      return g.u;
    };
    return out;
  }
  out.forward = [=, &c](const std::vector<T>& u) {
    auto r = twins::channel_forward(sequences, D, N, channel_values(c, u, states.initial));
    if (states.final != nullptr) {
      *states.final = {std::move(r.final_state), std::move(r.final_reverse)};
    }
    return std::move(r.y);
  };
  out.backward = [=, &c](const std::vector<T>& u, const std::vector<T>& dy) {
    const auto g = twins::channel_backward(sequences, D, N, channel_values(c, u, states.initial),
                                           dy, states.dfinal.forward, states.dfinal.reverse);
    Channel<T> to = c;
    to.lambda_re = g.lambda_re, to.lambda_im = g.lambda_im;
    to.c_re = g.c_re, to.c_im = g.c_im;
    to.c_reverse_re = g.c_reverse_re, to.c_reverse_im = g.c_reverse_im;
    *states.gradient = std::move(to);
    *states.dinitial = {g.initial, g.initial_reverse};
    return g.u;
  };
  return out;
}

template void set_system(const Description<double>&, twins::BlockValues<double>&);
template void set_system(const Description<float>&, twins::BlockValues<float>&);
template Description<double> system_of(const Description<double>&,
                                       const twins::BlockValues<double>&);
template Description<float> system_of(const Description<float>&, const twins::BlockValues<float>&);
template twins::LayerTwin<double> channel_twin(const Channel<double>&, const kernels::Sequences&,
                                               const ChannelTwinStates<double>&);
template twins::LayerTwin<float> channel_twin(const Channel<float>&, const kernels::Sequences&,
                                              const ChannelTwinStates<float>&);

}  // namespace rotrnn
