#pragma once

#include <string>

#include "rotrnn/distributed/c10d_table.h"

namespace rotrnn {

/// Loads librotrnn_c10d.so, once: the file that ROTRNN_C10D names, else the one beside the program
/// (its folder, ../lib, ../lib64, ../lib/ARCHITECTURE), else the one that the system's loader
/// finds. std::runtime_error reports what was tried and what to do. Takes half a second: LibTorch
/// comes with it.
const RotrnnC10d& load_c10d();

/// Where the library is, without loading it: it takes LibTorch half a second to start. For reports
/// of bugs.
std::string describe_c10d();

}  // namespace rotrnn
