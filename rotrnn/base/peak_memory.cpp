#include "rotrnn/base/peak_memory.h"

#include <malloc.h>

#include <fstream>
#include <sstream>
#include <string>

namespace rotrnn {
namespace {

// A line such as "VmHWM:  12345 kB" of /proc/self/status, in MB; negative when there is none.
double status_mb(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name + ":")) continue;
    double kilobytes = -1;
    std::istringstream(line.substr(name.size() + 1)) >> kilobytes;
    return kilobytes / 1024;
  }
  return -1;
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);  // what earlier work freed is not to be counted as held
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again from here
  start_mb_ = status_mb("VmRSS");
}

double PeakMemory::increase_mb() const {
  const double peak = status_mb("VmHWM");
  return start_mb_ < 0 || peak < 0 ? -1 : peak - start_mb_;
}

}  // namespace rotrnn
