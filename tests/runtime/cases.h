#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "rotrnn/runtime/model.h"
#include "rotrnn/runtime/stream.h"

// Models and inputs that tests/golden/folded.py made, with what NumPy computed of them in float64.

namespace rotrnn::runtime::test {

inline const std::filesystem::path kCases = ROTRNN_FOLDED;

/// As folded.py describes it.
struct Case {
  std::string name;
  std::filesystem::path file;
  int64_t inputs = 0, outputs = 0;
  bool streams = false, end_mark = false;
  std::vector<int64_t> lengths;
  std::vector<float> values;
  std::vector<int32_t> tokens;
  std::string text;
  std::vector<double> logits, answer, norms;

  bool takes_tokens() const { return !tokens.empty(); }
  int64_t rows() const { return static_cast<int64_t>(logits.size()) / outputs; }
  /// Steps of the input; of text, its characters and the end mark.
  int64_t steps() const {
    return takes_tokens() ? std::ssize(tokens) : std::ssize(values) / inputs;
  }
  std::span<const double> row(int64_t i) const {
    return std::span(logits).subspan(static_cast<size_t>(i * outputs),
                                     static_cast<size_t>(outputs));
  }
  std::shared_ptr<const Model> load() const { return Model::load(file); }
};

inline std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::ifstream in(kCases / "cases.json");
    if (!in) {
      throw std::runtime_error(kCases.string() +
                               "/cases.json is missing; make it: tests/golden/folded.py --make " +
                               kCases.string());
    }
    std::vector<Case> out;
    const auto file = nlohmann::json::parse(in);
    for (const auto& j : file.at("cases")) {
      Case c;
      c.name = j.at("name");
      c.file = kCases / j.at("file").get<std::string>();
      c.inputs = j.at("inputs");
      c.outputs = j.at("outputs");
      c.streams = j.at("streams");
      c.end_mark = j.at("end_mark");
      c.lengths = j.at("lengths").get<std::vector<int64_t>>();
      if (j.contains("values")) c.values = j.at("values").get<std::vector<float>>();
      if (j.contains("tokens")) c.tokens = j.at("tokens").get<std::vector<int32_t>>();
      if (j.contains("text")) c.text = from_hex(j.at("text"));
      c.logits = j.at("logits").get<std::vector<double>>();
      c.answer = j.at("answer").get<std::vector<double>>();
      if (c.streams) c.norms = j.at("norms").get<std::vector<double>>();
      out.push_back(std::move(c));
    }
    return out;
  }();
  return all;
}

inline const Case& case_named(const std::string& name) {
  for (const Case& c : cases()) {
    if (c.name == name) return c;
  }
  throw std::runtime_error("there is no case " + name);
}

/// Largest |a - b| / (1 + |b|).
template <typename A>
double distance(std::span<const A> a, std::span<const double> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]) / (1 + std::abs(b[i]));
    most = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(most, d);
  }
  return most;
}

inline std::string file_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What a call threw, "" when nothing of this type.
template <typename Error, typename Body>
std::string thrown(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace rotrnn::runtime::test
