#include "rotrnn/layers/liquid_s4/options.h"

#include <fmt/format.h>

#include "rotrnn/layers/liquid_s4/liquid_s4.h"
#include "rotrnn/layers/s4/s4.h"

namespace rotrnn {
namespace {

[[noreturn]] void refuse_liquid_s4(const char* key, const std::string& what) {
  throw SettingError(key, "Liquid-S4: " + what);
}

}  // namespace

void check(const LiquidS4Options& o, bool sizes) {
  check(o.s4, sizes);
  if (o.degree < 2 || o.degree > kMostDegree) {
    refuse_liquid_s4("liquid_s4.degree", fmt::format("degree is {}; products have 2 to {} inputs",
                                                     o.degree, kMostDegree));
  }
  if (o.form == LiquidForm::kb && o.mode == LiquidMode::reference) {
    refuse_liquid_s4("liquid_s4.mode",
                     "form \"kb\" is causal; use mode = \"causal\", or form = \"pb\"");
  }
}

void check_liquid_s4(const LayerOptions& o, bool sizes) {
  check(o.liquid_s4_options(), sizes);
}

std::string describe_liquid_s4(const LayerOptions& o) {
  return fmt::format("{}, products of up to {} inputs", describe_s4(o), o.liquid_s4.degree);
}

}  // namespace rotrnn
