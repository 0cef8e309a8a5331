#define ROTRNN_TABLE table_baseline
#define ROTRNN_NAME "baseline"
#include "rotrnn/kernels/simd/targets/table-inl.h"
