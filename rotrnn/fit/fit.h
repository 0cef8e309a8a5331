#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/fit/draw.h"
#include "rotrnn/fit/score.h"
#include "rotrnn/fit/source.h"

namespace rotrnn::fit {

/// What the sequences of a source should give.
struct Targets {
  size_t outputs = 0;                // classes, or values per example
  std::vector<int64_t> classes;      // [count], or
  std::vector<double> values;        // [count, outputs], in units of their deviation
  std::vector<int64_t> groups = {};  // [count], from 0 on; empty: none
  std::vector<double> weights = {};  // [count]; empty: all 1

  bool classification() const { return !classes.empty(); }
};

struct FitOptions {
  size_t states = 1024;
  uint64_t seed = 0;
  int threads = 1;
  bool balance = true;    // classes of uneven size count the same
  BankOptions bank = {};  // but states and seed
};

/// Where an estimate of the error comes from.
enum class EstimateKind { leave_one_out, leave_one_group_out, held_out };

/// What a fitted model does on examples that it was not fitted to: by leaving each (or each group)
/// out of the fit, or by a fifth that is held out.
struct Estimate {
  EstimateKind kind = EstimateKind::leave_one_out;
  size_t examples = 0;
  Mean accuracy;           // classes
  Mean loss;               // log loss, weighted as in the fit; or the mean square
  double calibration = 0;  // calibration_error of the probabilities
  std::vector<int64_t> confusion;
};

/// A bank, and a head on its features: features of a bank → scores, or values. The scale of the
/// features and the temperature are folded into the head.
struct Fitted {
  kernels::FeatureBank bank;
  size_t outputs = 0;
  std::vector<float> weight, bias;  // [outputs, features], [outputs]
  std::vector<double> importance;   // [states]: √Σβ² over features of mean 0 and deviation 1
  double penalty = 0, temperature = 1;  // penalty: times the mean square of the features
  Estimate estimate;
  std::vector<std::string> messages;
};

/// Fits. Everything that is chosen (penalty, temperature) is chosen by the estimate. Examples of
/// weight 0 are left out. std::invalid_argument for targets that do not fit, or too few examples.
Fitted fit(const Source& source, const Targets& targets, const FitOptions& options);

/// Outputs [sequences, outputs] of a fitted model: the logits of classes, or values.
std::vector<float> predict(const Fitted& model, const Source& source, int threads);

/// "leave one out", "leave one group out", "held out".
const char* estimate_name(EstimateKind kind);

}  // namespace rotrnn::fit
