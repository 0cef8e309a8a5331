#pragma once

#include <array>

// Words of the model file that its reader and its writer share. Those of enums are in the order of
// the values.

namespace rotrnn::model_format {

inline constexpr char kFormat[] = "rotrnn-model", kVersion[] = "1";
inline constexpr std::array kSystems{"diagonal", "channel", "features"};
inline constexpr std::array kNorms{"affine", "layer", "none"};
inline constexpr std::array kInputs{"tokens", "values"};
inline constexpr std::array kTargets{"classes", "values"};
/// No products of neighbouring inputs, those inside the recurrence, those outside.
inline constexpr std::array kProducts{"none", "kb", "pb"};

}  // namespace rotrnn::model_format
