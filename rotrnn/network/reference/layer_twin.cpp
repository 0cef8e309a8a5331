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
  static_cast<Channel<T>&>(v) = c;
  v.D.clear();  // the block's
  v.u = u;
  v.initial = initial.forward, v.initial_reverse = initial.reverse;
  return v;
}

}  // namespace

template <class T>
void set_layer(const Description<T>& description, twins::BlockValues<T>& v) {
  if (const auto* s = std::get_if<Diagonal<T>>(&description)) {
    static_cast<Diagonal<T>&>(v) = *s;
  } else {
    v.D = std::get<Channel<T>>(description).D;
  }
}

template <class T>
Description<T> layer_of(const twins::BlockValues<T>& g) {
  return static_cast<const Diagonal<T>&>(g);
}

template <class T>
twins::LayerTwin<T> channel_twin(const Channel<T>& c, const kernels::PackedSequences& sequences,
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
    *states.gradient = static_cast<const Channel<T>&>(g);
    *states.dinitial = {g.initial, g.initial_reverse};
    return g.u;
  };
  return out;
}

template void set_layer(const Description<double>&, twins::BlockValues<double>&);
template void set_layer(const Description<float>&, twins::BlockValues<float>&);
template Description<double> layer_of(const twins::BlockValues<double>&);
template Description<float> layer_of(const twins::BlockValues<float>&);
template twins::LayerTwin<double> channel_twin(const Channel<double>&,
                                               const kernels::PackedSequences&,
                                               const ChannelTwinStates<double>&);
template twins::LayerTwin<float> channel_twin(const Channel<float>&,
                                              const kernels::PackedSequences&,
                                              const ChannelTwinStates<float>&);

}  // namespace rotrnn
