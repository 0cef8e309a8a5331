#pragma once

#include <stdexcept>

#include "rotrnn/kernels/block/block.h"
#include "rotrnn/network/options.h"

namespace rotrnn {

/// The kernels' name of an activation.
inline kernels::Activation to_kernels(Activation a) {
  switch (a) {
    case Activation::full_glu:
      return kernels::Activation::full_glu;
    case Activation::exact_glu:
      return kernels::Activation::exact_glu;
    case Activation::half_glu1:
      return kernels::Activation::half_glu1;
    case Activation::half_glu2:
      return kernels::Activation::half_glu2;
    case Activation::gelu:
      return kernels::Activation::gelu;
  }
  throw std::logic_error("activation");
}

/// The kernels' name of a norm.
inline kernels::Norm to_kernels(NormKind norm) {
  return norm == NormKind::batch ? kernels::Norm::batch : kernels::Norm::layer;
}

}  // namespace rotrnn
