#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/layers/layer.h"
#include "rotrnn/training/config/config.h"

/// Reads what the ATen path of version 0.1 computed (tests/fixtures/README.md).
namespace rotrnn::testing {

using Doubles = std::vector<double>;

/// A tensor of a file in double, whatever floating type it has there.
inline Doubles doubles_of(const SafeTensor& tensor) {
  const size_t count = count_of(tensor.shape);
  Doubles out(count);
  std::vector<float> floats(count);
  if (tensor.dtype == Dtype::f64) {
    std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  } else {
    EXPECT_EQ(tensor.dtype, Dtype::f32);
    std::memcpy(floats.data(), tensor.data.data(), tensor.data.size());
    std::copy(floats.begin(), floats.end(), out.begin());
  }
  return out;
}

/// One case of a file.
class Recorded {
 public:
  Recorded(const SafeTensorFile& file, std::string name) : file_(file), name_(std::move(name)) {}

  /// The tensor of that name; empty where there is none.
  Doubles operator[](const std::string& tensor) const {
    const std::string full = name_ + "/" + tensor;
    return file_.contains(full) ? doubles_of(file_.at(full)) : Doubles();
  }
  std::vector<int64_t> integers(const std::string& tensor) const {
    const SafeTensor& found = file_.at(name_ + "/" + tensor);
    std::vector<int64_t> out(count_of(found.shape));
    std::memcpy(out.data(), found.data.data(), found.data.size());
    return out;
  }
  const std::vector<int64_t>& shape(const std::string& tensor) const {
    return file_.at(name_ + "/" + tensor).shape;
  }
  bool has(const std::string& tensor) const { return file_.contains(name_ + "/" + tensor); }

 private:
  const SafeTensorFile& file_;
  std::string name_;
};

inline SafeTensorFile open_fixture(const std::string& name) {
  return SafeTensorFile(std::filesystem::path(ROTRNN_SOURCE) / "tests/fixtures" / name);
}

/// The largest absolute error that the ATen path in float32 had in a tensor of a case.
inline double float32_error(const SafeTensorFile& file, const std::string& name,
                            const std::string& tensor) {
  static std::map<std::string, nlohmann::json> parsed;  // by file
  nlohmann::json& errors = parsed[file.where()];
  if (errors.is_null()) errors = nlohmann::json::parse(file.metadata().at("float32_error"));
  return errors.at(name).value(tensor, 0.0);
}

/// The settings of every case of a file, by dotted keys.
inline nlohmann::json cases_of(const SafeTensorFile& file) {
  return nlohmann::json::parse(file.metadata().at("cases"));
}

/// Settings below [model], and those of [frontend], as options.
inline ModelOptions options_of(const nlohmann::json& settings) {
  static const std::vector<std::string> other{"seed",   "stream", "input",     "inputs",
                                              "target", "towers", "per_token", "outputs"};
  Config config;
  for (const auto& [key, value] : settings.items()) {
    if (std::find(other.begin(), other.end(), key) != other.end()) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    apply_setting(config, (key.starts_with("frontend.") ? "" : "model.") + key + "=" + text);
  }
  return config.model;
}

/// Compares arrays, relative to the largest number of `want`, or to 1e-4 where all are smaller:
/// some gradients are sums that cancel, of which only rounding is left.
/// `absolute` is allowed on top.
inline void expect_close(const Doubles& got, const Doubles& want, double tolerance,
                         const std::string& what, double absolute = 0) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 1e-4, difference = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i])) << what << "[" << i << "]";
    largest = std::max(largest, std::abs(want[i]));
    difference = std::max(difference, std::abs(got[i] - want[i]));
  }
  EXPECT_LE(difference, tolerance * largest + absolute) << what;
}

/// The same of whatever arrays of numbers.
template <class Got, class Want>
void expect_close(const Got& got, const Want& want, double tolerance, const std::string& what) {
  expect_close(Doubles(got.begin(), got.end()), Doubles(want.begin(), want.end()), tolerance, what);
}

/// The tensors of a layer in memory of their own, with gradients.
struct OwnedLayer {
  explicit OwnedLayer(const TensorSpecs& specs) {
    for (const ParameterSpec& p : specs.parameters) {
      add(p.name, p.shape);
      auto& gradient = gradients_[p.name];
      gradient.assign(count_of(p.shape), 0.0);
      gradients.add(p.name, gradient);
    }
    for (const BufferSpec& b : specs.buffers) {
      if (b.integer) {
        auto& integers = integers_[b.name];
        integers.assign(count_of(b.shape), 0);
        values.integers.add(b.name, integers);
      } else {
        add(b.name, b.shape);
      }
    }
  }
  OwnedLayer(const OwnedLayer&) = delete;
  OwnedLayer(OwnedLayer&&) = default;  // the arrays stay where they are

  int64_t& length() { return *values.integers["length"]; }  // S4

  LayerValues values;
  Views<double> gradients;

 private:
  void add(const std::string& name, const std::vector<int64_t>& shape) {
    auto& array = floats_[name];
    array.assign(count_of(shape), 0.0f);
    values.tensors.add(name, array);
  }

  std::map<std::string, std::vector<float>> floats_;
  std::map<std::string, std::vector<double>> gradients_;
  std::map<std::string, std::vector<int64_t>> integers_;
};

/// The recorded parameters and buffers of a case; those after it has grown, if it has and `grown`.
inline OwnedLayer recorded_layer(const TensorSpecs& specs, const Recorded& r, bool grown = true) {
  OwnedLayer layer(specs);
  const std::string prefix = grown && r.has("grown_buffer/length") ? "grown_" : "";
  const auto full = [&](const std::string& tensor) {
    const std::string parameter = prefix + "param/" + tensor;
    return r.has(parameter) ? parameter : prefix + "buffer/" + tensor;
  };
  for (const auto& [tensor, values] : layer.values.tensors) {
    const Doubles recorded = r[full(tensor)];
    EXPECT_EQ(recorded.size(), values.size()) << tensor;
    if (recorded.size() != values.size()) continue;
    for (size_t i = 0; i < recorded.size(); ++i) values[i] = static_cast<float>(recorded[i]);
  }
  for (const auto& [tensor, values] : layer.values.integers) {
    const std::vector<int64_t> recorded = r.integers(full(tensor));
    std::copy_n(recorded.begin(), values.size(), values.begin());
  }
  return layer;
}

/// A layer step by step, against what was recorded of it.
inline void expect_recurrence(const ChannelSteps& steps, const Recorded& r, double tolerance) {
  steps.each([&](const char* field, const Doubles& got, auto) {
    expect_close(got, r[std::string("recurrence/") + field], tolerance, field);
  });
  const std::string inside = "recurrence/liquid_inside";
  EXPECT_EQ(steps.liquid_inside, r.has(inside) && r.integers(inside).at(0) != 0);
}

}  // namespace rotrnn::testing
