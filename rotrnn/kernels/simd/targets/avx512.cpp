#define ROTRNN_TABLE table_avx512
#define ROTRNN_NAME "avx512"
#include "rotrnn/kernels/simd/targets/table-inl.h"
