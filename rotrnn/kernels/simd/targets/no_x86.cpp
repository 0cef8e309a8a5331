#include "rotrnn/kernels/simd/targets/tables.h"

namespace rotrnn::kernels {

const Table* table_avx512() {
  return nullptr;
}

const Table* table_avx2() {
  return nullptr;
}

}  // namespace rotrnn::kernels
