#include "rotrnn/layers/rotrnn/options.h"

#include <fmt/format.h>

#include "rotrnn/layers/rotrnn/rotrnn.h"

namespace rotrnn {
namespace {

[[noreturn]] void refuse_rotrnn(const char* key, const std::string& what) {
  throw SettingError(key, "RotRNN: " + what);
}

void check_sizes(const RotRNNOptions& o) {
  if (o.width < 1)
    refuse_rotrnn("width", fmt::format("width is {}; it must be at least 1", o.width));
  if (o.heads < 1)
    refuse_rotrnn("heads", fmt::format("heads is {}; it must be at least 1", o.heads));
  if (o.state < 1 || o.state % o.heads != 0) {
    refuse_rotrnn("heads",
                  fmt::format("heads = {} does not divide state = {}; make the state a multiple of "
                              "the heads",
                              o.heads, o.state));
  }
  if (o.head_size() < 2) {
    refuse_rotrnn("heads",
                  fmt::format("heads = {} leaves {} dimension of state = {} for a head; a rotation "
                              "needs 2 or more, so use at most {} heads",
                              o.heads, o.head_size(), o.state, o.state / 2));
  }
}

}  // namespace

void check(const RotRNNOptions& o, bool sizes) {
  if (sizes) check_sizes(o);
  if (!(o.c > 0)) refuse_rotrnn("c", fmt::format("c is {}; it must be above 0", o.c));
  if (o.stationary_start && o.normalisation != Normalisation::xi) {
    refuse_rotrnn("stationary_start", "stationary_start needs normalisation = \"xi\"");
  }
  const InitOptions& i = o.init;
  if (!(0 <= i.gamma_min && i.gamma_min < i.gamma_max && i.gamma_max < 1)) {
    refuse_rotrnn(
        "init.gamma_min",
        fmt::format("gamma_min = {} and gamma_max = {}, but 0 <= gamma_min < gamma_max < 1",
                    i.gamma_min, i.gamma_max));
  }
  if (i.resolved().gamma_init == GammaInit::log_uniform && i.gamma_min == 0) {
    refuse_rotrnn("init.gamma_min", "gamma_min must be above 0 with gamma_init = \"log_uniform\"");
  }
  if (!(i.theta_max > 0)) {
    refuse_rotrnn("init.theta_max",
                  fmt::format("theta_max is {}; it must be above 0", i.theta_max));
  }
}

void check_rotrnn(const LayerOptions& o, bool sizes) {
  check(o.rotrnn_options(), sizes);
}

std::string describe_rotrnn(const LayerOptions& o) {
  return fmt::format("state {}, {} heads", o.state, o.heads);
}

}  // namespace rotrnn
