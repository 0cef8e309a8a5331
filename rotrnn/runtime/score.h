#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rotrnn/runtime/model.h"

namespace rotrnn::runtime {

/// Whole sequences on all cores, also of bidirectional models and pairs.
///
/// offsets [sequences + 1]: sequence i holds steps offsets[i] .. offsets[i+1] (at least one). A
/// pair is two sequences that follow each other. Keeps its memory from call to call.
class ROTRNN_API Scorer {
 public:
  /// threads: 0 for as many as the process may use.
  explicit Scorer(std::shared_ptr<const Model> model, int threads = 0);
  ~Scorer();

  /// Logits [examples, outputs], or [steps, outputs] where the model has no pooling. values are
  /// [steps, inputs] in natural units, tokens are numbers. std::invalid_argument for wrong input.
  std::vector<float> score(std::span<const float> values, std::span<const int64_t> offsets);
  std::vector<float> score_tokens(std::span<const int32_t> tokens,
                                  std::span<const int64_t> offsets);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rotrnn::runtime
