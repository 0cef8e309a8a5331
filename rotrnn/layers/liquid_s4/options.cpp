#include "rotrnn/layers/liquid_s4/liquid_s4.h"

#include <fmt/format.h>

#include "rotrnn/layers/s4/s4.h"

namespace rotrnn {
namespace {

[[noreturn]] void refuse_liquid_s4(const char* key, const std::string& what) {
  throw SettingError(key, "Liquid-S4: " + what);
}

}  // namespace

void check_liquid_s4(const LayerOptions& o, bool sizes) {
  check_s4(o, sizes);
  if (o.liquid_s4.degree < 2 || o.liquid_s4.degree > kMostDegree) {
    refuse_liquid_s4("liquid_s4.degree", fmt::format("degree is {}; products have 2 to {} inputs",
                                                     o.liquid_s4.degree, kMostDegree));
  }
  if (o.liquid_s4.form == LiquidForm::kb && o.liquid_s4.mode == LiquidMode::reference) {
    refuse_liquid_s4("liquid_s4.mode",
                     "form \"kb\" is causal; use mode = \"causal\", or form = \"pb\"");
  }
}

std::string describe_liquid_s4(const LayerOptions& o) {
  return fmt::format("{}, products of up to {} inputs", describe_s4(o), o.liquid_s4.degree);
}

}  // namespace rotrnn
