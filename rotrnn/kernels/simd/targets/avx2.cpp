#define ROTRNN_TABLE table_avx2
#define ROTRNN_NAME "avx2"
#include "rotrnn/kernels/simd/targets/table-inl.h"
