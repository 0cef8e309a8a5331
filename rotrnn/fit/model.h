#pragma once

#include <string>
#include <vector>

#include "rotrnn/fit/fit.h"
#include "rotrnn/spec/model_file.h"

namespace rotrnn::fit {

/// What a model file says besides its numbers.
struct ModelFacts {
  DataShape shape;
  std::vector<std::string> classes;
  Preprocessing preprocessing;
  std::string task = "fit";
};

/// A fitted model as a file, for the runtime.
ModelFile model_file(const Fitted& model, const ModelFacts& facts);

}  // namespace rotrnn::fit
