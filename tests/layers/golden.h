#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/layers/double_layer.h"

/// Numbers made by the scripts in tests/golden/, which know only the equations.
namespace rotrnn::testing {

/// Rounding of a few thousand operations in double is below 1e-12; what the cases are made to show,
/// such as a plain difference 1 - |λ|² or e^w - 1, is 1e-9 and more.
constexpr double kGolden = 1e-10;

inline const nlohmann::json& golden(const std::string& layer) {
  static std::map<std::string, nlohmann::json> files;
  nlohmann::json& file = files[layer];
  if (file.is_null()) {
    file = nlohmann::json::parse(std::ifstream(ROTRNN_GOLDEN "/" + layer + ".json"));
  }
  return file;
}

/// An array; empty where there is none.
inline Doubles array(const nlohmann::json& tree, const std::string& name) {
  return tree.contains(name) ? tree.at(name).at("values").get<Doubles>() : Doubles();
}
inline Complexes complex_array(const nlohmann::json& tree, const std::string& name) {
  return complexes(array(tree, name + "_re"), array(tree, name + "_im"));
}

/// The options of a case.
inline LayerOptions golden_options(const std::string& layer, const nlohmann::json& o) {
  LayerOptions options;
  options.layer = layer;
  options.width = o.at("D");
  options.state = o.contains("N")   ? o.at("N").get<int64_t>()
                  : o.contains("P") ? o.at("P").get<int64_t>()
                                    : 2 * o.at("S").get<int64_t>();
  options.bidirectional = o.at("bidirectional");
  const auto is = [&](const char* name, const char* value) {
    return o.contains(name) && o.at(name) == value;
  };
  const auto rule =
      is("discretisation", "bilinear") ? Discretisation::bilinear : Discretisation::zoh;
  if (layer == "rotrnn") {
    options.rotrnn.heads = o.at("H");
    options.rotrnn.stationary_start = o.at("stationary_start");
    options.rotrnn.c = o.at("c");
    options.rotrnn.normalisation = is("normalisation", "xi")      ? Normalisation::xi
                                   : is("normalisation", "alpha") ? Normalisation::alpha
                                                                  : Normalisation::none;
  } else if (layer == "lru") {
    options.lru.gamma = is("gamma", "fixed") ? LruGamma::fixed : LruGamma::learned;
  } else if (layer == "s5") {
    options.s5.blocks = o.at("J");
    options.s5.discretisation = rule;
    options.s5.step_rescale = o.at("step_rescale");
    options.s5.clip = o.at("clip");
  } else if (layer == "s4d") {
    options.s4d.init = is("init", "lin")   ? S4DInit::lin
                       : is("init", "inv") ? S4DInit::inv
                                           : S4DInit::legs;
    options.s4d.discretisation = rule;
    options.s4d.tied = o.at("tied");
    options.s4d.train_b = o.at("train_b");
    options.s4d.step_rescale = o.at("step_rescale");
  } else {
    options.s4.tied = o.at("tied");
  }
  if (layer == "liquid_s4") {
    LiquidS4Options& l = options.liquid_s4;
    l.form = is("form", "kb") ? LiquidForm::kb : LiquidForm::pb;
    l.mode = is("mode", "reference") ? LiquidMode::reference : LiquidMode::causal;
    l.coefficient =
        is("coefficient", "reference") ? LiquidCoefficient::reference : LiquidCoefficient::power;
    l.degree = o.at("degree");
    l.train_liquid = o.at("train_liquid");
  }
  return options;
}

/// Tensors of a tree into a layer, which must have the shapes; a float32 takes them without error.
inline void load_golden(const nlohmann::json& tree, DoubleLayer& layer) {
  for (const auto& [name, value] : tree.items()) {
    const Doubles given = array(tree, name);
    const std::span<float> to = layer.of(name);
    ASSERT_EQ(to.size(), given.size()) << name;
    std::transform(given.begin(), given.end(), to.begin(), [&](double x) {
      EXPECT_EQ(static_cast<double>(static_cast<float>(x)), x) << name;
      return static_cast<float>(x);
    });
  }
}

/// A case: the layer with its parameters, and its batch.
struct GoldenCase {
  GoldenCase(const std::string& name, const nlohmann::json& json)
      : c(json),
        layer(golden_options(name, json.at("options"))),
        batch{json.at("offsets").get<std::vector<int64_t>>(), input("u"), {}} {
    load_golden(c.at("parameters"), layer);
    if (c.contains("buffers")) load_golden(c.at("buffers"), layer);
    const auto specs = layer.kind().tensors(layer.options());
    EXPECT_EQ(specs.parameters.size(), c.at("parameters").size());
    if (c.at("options").contains("L")) layer.length() = c.at("options").at("L");
  }

  Doubles input(const char* tensor) const { return array(c.at("input"), tensor); }
  Doubles output(const char* tensor) const { return array(c.at("outputs"), tensor); }
  bool has_output(const char* tensor) const { return c.at("outputs").contains(tensor); }

  const nlohmann::json& c;
  DoubleLayer layer;
  DoubleBatch batch;
};

}  // namespace rotrnn::testing
