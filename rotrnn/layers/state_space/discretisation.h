#pragma once

namespace rotrnn {

/// From continuous to discrete time: zero-order hold, or the bilinear rule.
enum class Discretisation { zoh, bilinear };

}  // namespace rotrnn
