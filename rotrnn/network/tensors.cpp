#include "rotrnn/network/tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/features/feature_tensors.h"
#include "rotrnn/network/frontend.h"

namespace rotrnn {
namespace {

uint64_t name_hash(const std::string& name) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char byte : name) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

void add_linear(TensorSpecs& out, const std::string& name, int64_t inputs, int64_t outputs) {
  out.parameters.push_back({name + ".weight", {outputs, inputs}, ParameterGroup::decay});
  out.parameters.push_back({name + ".bias", {outputs}, ParameterGroup::no_decay});
}

void add_block(TensorSpecs& out, const ModelOptions& m, int64_t index) {
  const std::string at = fmt::format("blocks.{}.", index);
  for (const char* name : {"norm.weight", "norm.bias"}) {
    out.parameters.push_back({at + name, {m.width}, ParameterGroup::no_decay});
  }
  if (m.norm == Norm::batch) {
    for (const char* name : {"norm.running_mean", "norm.running_var"}) {
      out.buffers.push_back({at + name, {m.width}});
    }
  }
  const TensorSpecs layer = layer_kind(m.layer).tensors(m);
  for (ParameterSpec p : layer.parameters) {
    p.name = at + "layer." + p.name;
    out.parameters.push_back(std::move(p));
  }
  for (BufferSpec b : layer.buffers) {
    b.name = at + "layer." + b.name;
    out.buffers.push_back(std::move(b));
  }
  if (has_value(m.activation)) add_linear(out, at + "value", m.width, m.width);
  if (has_gate(m.activation)) add_linear(out, at + "gate", m.width, m.width);
}

}  // namespace

TensorSpecs network_tensors(const ModelOptions& m, const DataShape& shape) {
  if (shape.towers == 2 && m.pooling == Pooling::none) {
    throw std::invalid_argument("model: pairs need a pooling; use mean or last");
  }
  if (shape.inputs < 1 || shape.outputs < 1 || m.depth < 1) {
    throw std::invalid_argument(
        fmt::format("model: {} inputs, {} outputs and {} blocks; each must be at least 1",
                    shape.inputs, shape.outputs, m.depth));
  }
  TensorSpecs out;
  const FrontendOptions frontend = frontend_of(m, shape);
  add_frontend_tensors(frontend, shape.inputs, out);
  if (m.body == Body::features) {
    add_feature_tensors(m, shape, out);
    return out;
  }
  if (shape.input == InputKind::tokens) {
    out.parameters.push_back({"encoder.weight", {shape.inputs, m.width}, ParameterGroup::decay});
  } else {
    add_linear(out, "encoder", frontend_channels(frontend, shape.inputs), m.width);
  }
  for (int64_t i = 0; i < m.depth; ++i) add_block(out, m, i);
  if (shape.towers == 2) add_linear(out, "hidden", 4 * m.width, m.width);
  add_linear(out, "head", m.width, shape.outputs);
  return out;
}

void draw_network(const ModelOptions& options, uint64_t seed, Weights& weights) {
  const WeightLayout& layout = weights.layout();
  set_frontend(options.frontend, weights);
  if (options.body == Body::features) return;  // fitted
  for (const auto& p : layout.parameters) {
    const std::span<float> values = weights.parameters().of(p);
    if (p.name.find(".layer.") != std::string::npos || p.name.starts_with("frontend.")) continue;
    if (p.name.find(".norm.") != std::string::npos) {
      std::fill(values.begin(), values.end(), p.name.ends_with("weight") ? 1.0f : 0.0f);
      continue;
    }
    const Random random(seed, RandomSite::initialise, {name_hash(p.name)});
    // An embedding has no bias, nor a number of inputs to divide by.
    if (p.name == "encoder.weight" && layout.find("encoder.bias") == nullptr) {
      draw_normal(values, 1, random);
      continue;
    }
    const std::string weight = p.name.substr(0, p.name.rfind('.')) + ".weight";
    const double bound = 1 / std::sqrt(static_cast<double>(layout.find(weight)->shape[1]));
    draw(values, random, [bound](Random& r) { return bound * (2 * r.uniform() - 1); });
  }
  for (const auto& b : layout.buffers) {
    if (!b.name.ends_with(".norm.running_var")) continue;
    std::fill_n(weights.buffers().begin() + static_cast<ptrdiff_t>(b.offset), b.count, 1.0f);
  }
  const LayerKind& kind = layer_kind(options.layer);
  for (int64_t i = 0; i < options.depth; ++i) {
    const auto block = static_cast<size_t>(i);
    kind.draw(options, seed, block, layer_values(options, block, weights));
  }
}

LayerValues layer_values(const LayerOptions& options, const std::string& prefix, Weights& weights) {
  const TensorSpecs specs = layer_kind(options.layer).tensors(options);
  LayerValues out;
  for (const ParameterSpec& p : specs.parameters) {
    out.tensors.add(p.name, weights.find(prefix + p.name));
  }
  for (const BufferSpec& spec : specs.buffers) {
    if (!spec.integer) {
      out.tensors.add(spec.name, weights.find(prefix + spec.name));
      continue;
    }
    for (const auto& b : weights.layout().buffers) {
      if (b.name != prefix + spec.name) continue;
      out.integers.add(spec.name, std::span(weights.integers()).subspan(b.offset, b.count));
    }
  }
  return out;
}

LayerValues layer_values(const ModelOptions& options, size_t block, Weights& weights) {
  return layer_values(options, fmt::format("blocks.{}.layer.", block), weights);
}

NetworkLayers::NetworkLayers(const ModelOptions& options, Weights& w)
    : weights(w.parameters().data()), gradients(static_cast<size_t>(options.depth)) {
  sums_.resize(w.layout().size);
  for (size_t block = 0; block < gradients.size(); ++block) {
    const std::string prefix = fmt::format("blocks.{}.layer.", block);
    values.push_back(layer_values(options, prefix, w));
    for (const auto& p : w.layout().parameters) {
      if (!p.name.starts_with(prefix)) continue;
      gradients[block].add(p.name.substr(prefix.size()),
                           std::span(sums_).subspan(p.offset, p.count));
      parameters_.push_back(p);
    }
  }
}

void NetworkLayers::write_gradients(FlatArray& out) const {
  for (const auto& p : parameters_) {
    const auto from = sums_.begin() + static_cast<ptrdiff_t>(p.offset);
    std::copy(from, from + static_cast<ptrdiff_t>(p.count), out.of(p).begin());
  }
}

void NetworkLayers::add_gradients(std::vector<double>& out) const {
  for (const auto& p : parameters_) {
    for (size_t i = p.offset; i < p.offset + p.count; ++i) out[i] += sums_[i];
  }
}

}  // namespace rotrnn
