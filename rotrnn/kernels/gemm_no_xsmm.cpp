#include "rotrnn/kernels/gemm.h"

namespace rotrnn::kernels {

const Gemm* gemm_xsmm() {
  return nullptr;
}

}  // namespace rotrnn::kernels
