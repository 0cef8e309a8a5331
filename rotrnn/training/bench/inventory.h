#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/spec/data_shape.h"
#include "rotrnn/training/config/config.h"

namespace rotrnn {

/// One parameter of a network.
struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count = 0;
  std::string group;  // which learning rate and decay it gets
};

/// Every parameter of the network that a config describes, in the order of the network.
std::vector<ParameterInfo> inventory(const ModelOptions& options, const DataShape& shape);

/// The number of parameters. Blocks are alike, so one is made and counted as often as there are.
int64_t parameter_count(const ModelOptions& options, const DataShape& shape);

/// What training by a config will take.
struct Estimate {
  double tokens_per_step = 0;    // batch × typical length of the task, behind a front end
  double flops_per_token = 0;    // useful operations, forward and backward
  double memory_bytes = 0;       // weights, gradients, moments and saved activations
  double tokens_per_second = 0;  // measured on this machine; 0 when not measured
  double hours = 0;              // of all steps; 0 when not measured
};

/// Useful floating-point operations per token of a training step: forward 1, backward 2.
double useful_flops_per_token(const ModelOptions& options);

/// Estimates; with `measure`, times a few training steps of this network on noise first.
Estimate estimate(const Config& config, const TaskFacts& facts, bool measure);

}  // namespace rotrnn
