#pragma once

namespace rotrnn::kernels {

/// How RotRNN scales its input against the memory of the state: see docs/layers.md.
enum class Normalisation { xi, alpha, none };

}  // namespace rotrnn::kernels
