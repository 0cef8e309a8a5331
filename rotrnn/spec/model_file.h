#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/spec/data_shape.h"
#include "rotrnn/spec/description.h"
#include "rotrnn/spec/frontend.h"
#include "rotrnn/spec/kinds.h"
#include "rotrnn/spec/preprocess.h"

namespace rotrnn {

class SafeTensorFile;

/// Numbers of a tensor of a model file, row by row; empty: there is none.
using Numbers = std::span<const float>;

/// x·weightᵀ + bias.
struct LinearNumbers {
  Numbers weight, bias;  // [outputs, inputs], [outputs]
};

/// A bank of rotations in place of encoder, blocks and pooling (kernels/features/bank.h has the
/// equations): groups of 16 states that read `taps` inputs each.
struct FeatureNumbers {
  int64_t states = 0, taps = 1;
  bool differences = true;
  Numbers theta, gamma_log, drive, thresholds;
  Numbers inputs;  // [groups, taps]: whole numbers
};

/// A trained network as `rotrnn export` writes it and streams run it (docs/deploy.md): what
/// training needed and the network does not is multiplied out. The only reader and the only writer
/// of the format.
struct ModelFile {
  /// A block, in the form of spec/description.h.
  struct Block {
    std::variant<DiagonalFields<Numbers>, ChannelStepFields<Numbers>> system;
    Numbers norm_scale, norm_shift;  // unless norm is none
    LinearNumbers value, gate;       // as the activation has them
  };

  std::string layer, task, version;
  int64_t width = 0;
  Activation activation = Activation::half_glu1;
  Norm norm = Norm::none;  // batch: a scale and a shift per channel; none: folded into the system
  bool prenorm = true, bidirectional = false;
  Pooling pooling = Pooling::mean;
  DataShape shape;
  std::vector<std::string> classes;
  Preprocessing preprocessing;

  // What makes tokens of samples, without low and high; the numbers are those of rotations.
  FrontendOptions frontend;
  Numbers theta, gamma_log, mean, deviation;
  std::optional<FeatureNumbers> features;  // then width is 6·states, and there are no blocks

  LinearNumbers encoder;  // without bias where tokens are embedded: weight [inputs, width]
  std::vector<Block> blocks;
  LinearNumbers hidden, head;  // hidden: of pairs

  /// Of every block.
  bool channels() const { return !features && blocks[0].system.index() == 1; }
  int64_t states() const;  // S, in each channel N
  int64_t degree() const;  // inputs in the longest product that enters a channel; 1: no products
  bool products_inside() const;

  /// Copies numbers to memory that lives as long as any copy of this.
  template <class Values>
  Numbers keep(const Values& values) {
    if (std::empty(values)) return {};
    auto* numbers = memory_->take<float>(std::size(values));
    std::transform(std::begin(values), std::end(values), numbers,
                   [](auto x) { return static_cast<float>(x); });
    return {numbers, std::size(values)};
  }
  /// The same of floats at any address.
  Numbers keep_bytes(std::span<const std::byte> bytes);

  /// All tensors, in the order of the file: visit(name, numbers, shape, whether a file may lack
  /// it). Those that such a model has not are left out.
  template <class Self, class Visit>
  static void each_tensor(Self& self, const Visit& visit);

 private:
  std::shared_ptr<kernels::Arena> memory_ = std::make_shared<kernels::Arena>();
};

/// The metadata "model" of the file, as JSON.
nlohmann::ordered_json model_facts(const ModelFile& model);

/// The bytes of the file; `where` stands for its path in messages.
std::string model_bytes(const ModelFile& model, const std::string& where);

/// Reads and checks everything; std::runtime_error that names `where`, what was seen and what to
/// do.
ModelFile read_model(const SafeTensorFile& file, const std::string& where);

// -------------------------------------------------------------------------------------------------

template <class Self, class Visit>
void ModelFile::each_tensor(Self& self, const Visit& visit) {
  using Shape = std::vector<int64_t>;
  const int64_t D = self.width;
  const auto linear = [&](const std::string& name, auto& numbers, int64_t inputs, int64_t outputs) {
    visit(name + ".weight", numbers.weight, Shape{outputs, inputs}, false);
    visit(name + ".bias", numbers.bias, Shape{outputs}, false);
  };
  if (self.shape.input != InputKind::tokens && self.frontend.kind == FrontendKind::rotations) {
    const int64_t channels = frontend_channels(self.frontend, self.shape.inputs);
    visit("frontend.theta", self.theta, Shape{self.frontend.bands}, false);
    visit("frontend.gamma_log", self.gamma_log, Shape{self.frontend.bands}, false);
    visit("frontend.mean", self.mean, Shape{channels}, false);
    visit("frontend.deviation", self.deviation, Shape{channels}, false);
  }
  if (self.features) {
    auto& f = *self.features;
    const int64_t S = f.states, groups = S / 16;
    visit("bank.theta", f.theta, Shape{S}, false);
    visit("bank.gamma_log", f.gamma_log, Shape{S}, false);
    visit("bank.drive", f.drive, Shape{groups, f.taps, 2, 16}, false);
    visit("bank.thresholds", f.thresholds, Shape{5, S}, false);
    visit("bank.inputs", f.inputs, Shape{groups, f.taps}, false);
    linear("head", self.head, D, self.shape.outputs);
    return;
  }
  if (self.shape.input == InputKind::tokens) {
    visit("encoder.weight", self.encoder.weight, Shape{self.shape.inputs, D}, false);
  } else {
    linear("encoder", self.encoder, frontend_channels(self.frontend, self.shape.inputs), D);
  }
  for (size_t i = 0; i < self.blocks.size(); ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    auto& block = self.blocks[i];
    std::visit(
        [&](auto& system) {
          system.each([&](const std::string& name, auto& numbers, const auto& shape) {
            const Shape sizes(shape);
            if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
            const bool reverse = name == "V_reverse" || name.starts_with("c_reverse");
            if (reverse && !self.bidirectional) return;
            const bool optional = name == "b" || name == "e" || name.starts_with("start_") ||
                                  name.starts_with("p_") || name.starts_with("q_") ||
                                  name.starts_with("b_");
            visit(at + name, numbers, sizes, optional);
          });
        },
        block.system);
    if (self.norm != Norm::none) {
      visit(at + "norm.scale", block.norm_scale, Shape{D}, false);
      visit(at + "norm.shift", block.norm_shift, Shape{D}, false);
    }
    if (has_value(self.activation)) linear(at + "value", block.value, D, D);
    if (has_gate(self.activation)) linear(at + "gate", block.gate, D, D);
  }
  if (self.shape.towers == 2) linear("hidden", self.hidden, 4 * D, D);
  linear("head", self.head, D, self.shape.outputs);
}

}  // namespace rotrnn
