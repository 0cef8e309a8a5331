#include "rotrnn/network/reference/reference_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rotrnn/network/block_config.h"
#include "rotrnn/network/dropout.h"

namespace rotrnn {
namespace {

namespace twins = kernels::reference;
template <class T>
using Values = std::vector<T>;

template <class T>
Values<T> find(const Weights& weights, const std::string& name) {
  const std::span<const float> found = weights.find(name);
  return {found.begin(), found.end()};
}

std::string in_block(size_t block, const char* name) {
  return fmt::format("blocks.{}.{}", block, name);
}

template <class T>
void put(const WeightLayout& layout, const std::string& name, const Values<T>& values,
         Values<T>& out) {
  const auto* p = layout.find(name);
  if (p != nullptr)
    std::copy(values.begin(), values.end(), out.begin() + static_cast<ptrdiff_t>(p->offset));
}

// out [rows, N] = x [rows, K]·weightᵀ + bias.
template <class T>
Values<T> dense(const Values<T>& x, size_t rows, const Values<T>& weight, const Values<T>& bias) {
  const size_t N = bias.size(), K = weight.size() / N;
  Values<T> out = twins::product(x, twins::transpose(weight, N, K), rows, K, N);
  for (size_t i = 0; i < out.size(); ++i) out[i] += bias[i % N];
  return out;
}

template <class T>
Values<T> column_sums(const Values<T>& x, size_t columns) {
  Values<T> out(columns);
  for (size_t i = 0; i < x.size(); ++i) out[i % columns] += x[i];
  return out;
}

// A layer as it is mapped, in double or rounded.
const Description<double>& described(const LayerMaps& maps, size_t layer, double) {
  return maps.exact(layer);
}
const Description<float>& described(const LayerMaps& maps, size_t layer, float) {
  return maps.rounded(layer);
}

}  // namespace

template <class T>
void TwinPass<T>::run_block(const ModelOptions& m, const Weights& weights, const LayerMaps& maps,
                            size_t block, Values& x) {
  twins::BlockValues<T>& v = values_[block];
  v.x = x;
  set_layer(described(maps, block, T()), v);
  v.norm_weight = find<T>(weights, in_block(block, "norm.weight"));
  v.norm_bias = find<T>(weights, in_block(block, "norm.bias"));
  v.value_weight = find<T>(weights, in_block(block, "value.weight"));
  v.value_bias = find<T>(weights, in_block(block, "value.bias"));
  v.gate_weight = find<T>(weights, in_block(block, "gate.weight"));
  v.gate_bias = find<T>(weights, in_block(block, "gate.bias"));
  const bool diagonal = std::holds_alternative<Diagonal<T>>(described(maps, block, T()));
  const States initial = input_.initial.empty() ? States() : input_.initial[block];
  if (diagonal) v.initial = initial.forward, v.initial_reverse = initial.reverse;
  const bool batch_norm = m.norm == Norm::batch;
  Values mean = find<T>(weights, in_block(block, "norm.running_mean"));
  Values variance = find<T>(weights, in_block(block, "norm.running_var"));
  if (batch_norm && input_.mode == Mode::evaluate) {  // a = weight/√(var + ε), c = bias - mean·a
    for (size_t d = 0; d < mean.size(); ++d) {
      v.norm_weight[d] /= std::sqrt(variance[d] + T(kNormEpsilon));
      v.norm_bias[d] -= mean[d] * v.norm_weight[d];
    }
  }
  const kernels::PackedSequences sequences{input_.batch.offsets.data(), input_.batch.sequences()};
  twins::LayerTwin<T> layer;
  if (!diagonal) {
    layer = channel_twin(std::get<Channel<T>>(described(maps, block, T())), sequences,
                         {.initial = initial, .final = &final_[block]});
  }
  traces_[block] = twins::block_forward(config_, sequences, v, masks1_[block], masks2_[block],
                                        diagonal ? nullptr : &layer);
  if (diagonal) final_[block] = {traces_[block].final_state[0], traces_[block].final_state[1]};
  x = traces_[block].out;
  if (batch_norm && input_.mode == Mode::train) {
    const auto share = static_cast<T>(1 - m.norm_momentum);
    for (size_t d = 0; d < mean.size(); ++d) {
      mean[d] += share * (traces_[block].norm.mean[d] - mean[d]);
      variance[d] += share * (traces_[block].norm.variance[d] - variance[d]);
    }
  }
  running_[block] = {mean, variance};
}

template <class T>
std::vector<T> TwinPass<T>::pool(const ModelOptions& m, const Values& x) const {
  const auto& offsets = input_.batch.offsets;
  const auto D = static_cast<size_t>(m.width);
  if (m.pooling == Pooling::none) return x;
  Values out(input_.batch.sequences() * D);
  for (size_t i = 0; i < input_.batch.sequences(); ++i) {
    const auto begin = static_cast<size_t>(offsets[i]), end = static_cast<size_t>(offsets[i + 1]);
    const bool mean = m.pooling == Pooling::mean;
    const T share = mean ? 1 / static_cast<T>(end - begin) : 1;
    for (size_t t = mean ? begin : end - 1; t < end; ++t) {
      for (size_t d = 0; d < D; ++d) out[i * D + d] += share * x[t * D + d];
    }
  }
  return out;
}

template <class T>
std::vector<T> TwinPass<T>::pool_backward(const ModelOptions& m, const Values& dpooled) const {
  const auto& offsets = input_.batch.offsets;
  const auto D = static_cast<size_t>(m.width);
  if (m.pooling == Pooling::none) return dpooled;
  Values out(input_.batch.rows() * D);
  for (size_t i = 0; i < input_.batch.sequences(); ++i) {
    const auto begin = static_cast<size_t>(offsets[i]), end = static_cast<size_t>(offsets[i + 1]);
    const bool mean = m.pooling == Pooling::mean;
    const T share = mean ? 1 / static_cast<T>(end - begin) : 1;
    for (size_t t = mean ? begin : end - 1; t < end; ++t) {
      for (size_t d = 0; d < D; ++d) out[t * D + d] = share * dpooled[i * D + d];
    }
  }
  return out;
}

template <class T>
const std::vector<T>& TwinPass<T>::forward(const ModelOptions& m, const DataShape& shape,
                                           const EngineOptions& engine, const Weights& weights,
                                           const LayerMaps& maps, const Input& input) {
  input_ = input;
  const auto depth = static_cast<size_t>(m.depth), D = static_cast<size_t>(m.width);
  frontend_.forward(m.frontend, static_cast<size_t>(shape.inputs), weights, input.batch);
  input_.batch.offsets = frontend_.offsets();
  const size_t n = input_.batch.rows();
  config_ = block_config(m, described(maps, 0, T()), input.mode, engine);
  inputs_ =
      shape.input == InputKind::tokens ? static_cast<size_t>(shape.inputs) : frontend_.channels();
  outputs_ = static_cast<size_t>(shape.outputs);
  rows_ = output_rows(m, shape, input_.batch);
  values_.assign(depth, {});
  traces_.assign(depth, {});
  final_.assign(depth, {});
  running_.assign(depth, {});
  masks1_.assign(depth, {});
  masks2_.assign(depth, {});
  for (size_t l = 0; l < depth && input.mode == Mode::train && m.dropout > 0; ++l) {
    const size_t size = input.batch.sequences() * D;
    if (drops_before_gate(m.activation)) {
      masks1_[l].resize(size);
      draw_mask(input.dropout, l, 0, D, m.dropout, masks1_[l].data());
    }
    if (drops_at_end(m.activation)) {
      masks2_[l].resize(size);
      draw_mask(input.dropout, l, 1, D, m.dropout, masks2_[l].data());
    }
  }
  const Values encoder = find<T>(weights, "encoder.weight");
  Values x(n * D);
  if (shape.input == InputKind::tokens) {
    for (size_t i = 0; i < n * D; ++i) {
      x[i] = encoder[static_cast<size_t>(input.batch.tokens[i / D]) * D + i % D];
    }
  } else {
    x = dense(frontend_.values(), n, encoder, find<T>(weights, "encoder.bias"));
  }
  for (size_t l = 0; l < depth; ++l) run_block(m, weights, maps, l, x);
  head_ = {};
  head_.pooled = pool(m, x);
  Values last = head_.pooled;
  if (shape.towers == 2) {
    for (size_t i = 0; i < rows_; ++i) {
      const T *a = head_.pooled.data() + 2 * i * D, *b = a + D;
      head_.joined.insert(head_.joined.end(), a, b + D);
      for (size_t d = 0; d < D; ++d) head_.joined.push_back(a[d] - b[d]);
      for (size_t d = 0; d < D; ++d) head_.joined.push_back(a[d] * b[d]);
    }
    head_.sum = dense(head_.joined, rows_, find<T>(weights, "hidden.weight"),
                      find<T>(weights, "hidden.bias"));
    for (const T s : head_.sum) head_.hidden.push_back(twins::gelu(s));
    last = head_.hidden;
  }
  y_ = dense(last, rows_, find<T>(weights, "head.weight"), find<T>(weights, "head.bias"));
  return y_;
}

template <class T>
typename TwinPass<T>::Gradients TwinPass<T>::backward(const ModelOptions& m, NetworkLayers& layers,
                                                      const Weights& weights, LayerMaps& maps,
                                                      const Values& dy,
                                                      const std::vector<States>& dfinal) {
  const WeightLayout& layout = weights.layout();
  const size_t depth = values_.size(), D = static_cast<size_t>(m.width), n = input_.batch.rows();
  Gradients out;
  out.parameters.resize(layout.size);
  out.initial.resize(depth);
  const bool pairs = !head_.joined.empty();
  const Values& last = pairs ? head_.hidden : head_.pooled;
  put(layout, "head.weight",
      twins::product(twins::transpose(dy, rows_, outputs_), last, outputs_, rows_, D),
      out.parameters);
  put(layout, "head.bias", column_sums(dy, outputs_), out.parameters);
  Values dpooled = twins::product(dy, find<T>(weights, "head.weight"), rows_, outputs_, D);
  if (pairs) {
    for (size_t i = 0; i < dpooled.size(); ++i) dpooled[i] *= twins::gelu_slope(head_.sum[i]);
    put(layout, "hidden.weight",
        twins::product(twins::transpose(dpooled, rows_, D), head_.joined, D, rows_, 4 * D),
        out.parameters);
    put(layout, "hidden.bias", column_sums(dpooled, D), out.parameters);
    const Values djoined =
        twins::product(dpooled, find<T>(weights, "hidden.weight"), rows_, D, 4 * D);
    dpooled.assign(2 * rows_ * D, 0);
    for (size_t i = 0; i < rows_; ++i) {
      for (size_t d = 0; d < D; ++d) {
        const T* g = djoined.data() + 4 * i * D + d;
        const T a = head_.pooled[2 * i * D + d], b = head_.pooled[(2 * i + 1) * D + d];
        dpooled[2 * i * D + d] = g[0] + g[2 * D] + g[3 * D] * b;
        dpooled[(2 * i + 1) * D + d] = g[D] - g[2 * D] + g[3 * D] * a;
      }
    }
  }
  Values dx = pool_backward(m, dpooled);
  const kernels::PackedSequences sequences{input_.batch.offsets.data(), input_.batch.sequences()};
  std::vector<Description<T>> descriptions(depth);
  for (size_t l = depth; l-- > 0;) {
    const bool diagonal = std::holds_alternative<Diagonal<T>>(described(maps, l, T()));
    const States ends = dfinal.empty() ? States() : dfinal[l];
    const States initial = input_.initial.empty() ? States() : input_.initial[l];
    twins::LayerTwin<T> layer;
    if (!diagonal) {
      layer = channel_twin(std::get<Channel<T>>(described(maps, l, T())), sequences,
                           {.initial = initial,
                            .dfinal = ends,
                            .gradient = &descriptions[l],
                            .dinitial = &out.initial[l]});
    }
    auto g = twins::block_backward(config_, sequences, values_[l], masks1_[l], masks2_[l],
                                   traces_[l], dx, diagonal ? ends.forward : Values(),
                                   diagonal ? ends.reverse : Values(), diagonal ? nullptr : &layer);
    dx = g.x;
    if (diagonal) {
      descriptions[l] = layer_of(g);
      out.initial[l] = {g.initial, g.initial_reverse};
    } else {
      std::get<Channel<T>>(descriptions[l]).D = g.D;
    }
    if (m.norm == Norm::batch && input_.mode == Mode::evaluate) {
      const Values mean = find<T>(weights, in_block(l, "norm.running_mean"));
      const Values variance = find<T>(weights, in_block(l, "norm.running_var"));
      for (size_t d = 0; d < D; ++d) {
        g.norm_weight[d] = (g.norm_weight[d] - mean[d] * g.norm_bias[d]) /
                           std::sqrt(variance[d] + T(kNormEpsilon));
      }
    }
    put(layout, in_block(l, "norm.weight"), g.norm_weight, out.parameters);
    put(layout, in_block(l, "norm.bias"), g.norm_bias, out.parameters);
    put(layout, in_block(l, "value.weight"), g.value_weight, out.parameters);
    put(layout, in_block(l, "value.bias"), g.value_bias, out.parameters);
    put(layout, in_block(l, "gate.weight"), g.gate_weight, out.parameters);
    put(layout, in_block(l, "gate.bias"), g.gate_bias, out.parameters);
  }
  if (input_.batch.values.empty()) {
    Values dencoder(inputs_ * D);
    for (size_t i = 0; i < n * D; ++i) {
      dencoder[static_cast<size_t>(input_.batch.tokens[i / D]) * D + i % D] += dx[i];
    }
    put(layout, "encoder.weight", dencoder, out.parameters);
  } else {
    put(layout, "encoder.weight",
        twins::product(twins::transpose(dx, n, D), frontend_.values(), D, n, inputs_),
        out.parameters);
    put(layout, "encoder.bias", column_sums(dx, D), out.parameters);
    const Values dtokens = twins::product(dx, find<T>(weights, "encoder.weight"), n, D, inputs_);
    out.values = frontend_.backward(weights, dtokens, out.parameters);
  }
  std::vector<Description<double>> exact(depth);
  for (size_t l = 0; l < depth; ++l) convert(descriptions[l], exact[l]);
  maps.backward(m, layers.values, 1, layers.gradients, &exact);
  std::vector<double> of_layers(layout.size);
  layers.add_gradients(of_layers);
  for (size_t i = 0; i < layout.size; ++i) out.parameters[i] += static_cast<T>(of_layers[i]);
  return out;
}

template class TwinPass<double>;
template class TwinPass<float>;

}  // namespace rotrnn
