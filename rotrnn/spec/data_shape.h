#pragma once

#include <cstdint>

namespace rotrnn {

enum class InputKind { tokens, channels };
enum class TargetKind { classes, values };

/// What goes into a network and what comes out of it; the data decide this.
struct DataShape {
  InputKind input = InputKind::tokens;
  int64_t inputs = 0;  // size of the vocabulary, or number of channels
  TargetKind target = TargetKind::classes;
  int64_t outputs = 0;     // number of classes, or of values to predict
  int64_t towers = 1;      // sequences of one example: 2 for pairs
  bool per_token = false;  // a target for every step instead of one for the sequence
  double rate = 0;         // samples per second; 0: not known
};

}  // namespace rotrnn
