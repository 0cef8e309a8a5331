#include "rotrnn/layers/rotrnn/rotrnn.h"

#include <fmt/format.h>

namespace rotrnn {
namespace {

[[noreturn]] void refuse_rotrnn(const char* key, const std::string& what) {
  throw SettingError(key, "RotRNN: " + what);
}

void check_rotrnn_sizes(const LayerOptions& o) {
  if (o.width < 1)
    refuse_rotrnn("width", fmt::format("width is {}; it must be at least 1", o.width));
  if (o.rotrnn.heads < 1)
    refuse_rotrnn("heads", fmt::format("heads is {}; it must be at least 1", o.rotrnn.heads));
  if (o.state < 1 || o.state % o.rotrnn.heads != 0) {
    refuse_rotrnn("heads",
                  fmt::format("heads = {} does not divide state = {}; make the state a multiple of "
                              "the heads",
                              o.rotrnn.heads, o.state));
  }
  if (o.rotrnn.head_size(o.state) < 2) {
    refuse_rotrnn("heads",
                  fmt::format("heads = {} leaves {} dimension of state = {} for a head; a rotation "
                              "needs 2 or more, so use at most {} heads",
                              o.rotrnn.heads, o.rotrnn.head_size(o.state), o.state, o.state / 2));
  }
}

}  // namespace

void check_rotrnn(const LayerOptions& o, bool sizes) {
  if (sizes) check_rotrnn_sizes(o);
  if (!(o.rotrnn.c > 0)) refuse_rotrnn("c", fmt::format("c is {}; it must be above 0", o.rotrnn.c));
  if (o.rotrnn.stationary_start && o.rotrnn.normalisation != Normalisation::xi) {
    refuse_rotrnn("stationary_start", "stationary_start needs normalisation = \"xi\"");
  }
  const RotRNNInit& i = o.rotrnn.init;
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

std::string describe_rotrnn(const LayerOptions& o) {
  return fmt::format("state {}, {} heads", o.state, o.rotrnn.heads);
}

}  // namespace rotrnn
