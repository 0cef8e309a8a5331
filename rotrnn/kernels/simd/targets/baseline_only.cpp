// In place of avx512.cpp and avx2.cpp, on other CPUs and in builds without them.
#include "rotrnn/kernels/simd/targets/tables.h"

namespace rotrnn::kernels {

const Table* table_avx512() {
  return nullptr;
}

const Table* table_avx2() {
  return nullptr;
}

}  // namespace rotrnn::kernels
