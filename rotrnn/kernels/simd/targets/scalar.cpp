#define HWY_COMPILE_ONLY_SCALAR
#define ROTRNN_TABLE table_scalar
#define ROTRNN_NAME "scalar"
#include "rotrnn/kernels/simd/targets/table-inl.h"
