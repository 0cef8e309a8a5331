#include "rotrnn/training/compare/presets.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/text/nearest.h"

namespace rotrnn {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all{
      {"normalisation",
       "how the input is scaled",
       {{"xi", {"model.normalisation=xi"}},
        {"alpha", {"model.normalisation=alpha"}},
        {"none", {"model.normalisation=none"}}}},
      {"heads",
       "rotations in a layer, those that divide the state",
       {{"heads-1", {"model.heads=1"}},
        {"heads-2", {"model.heads=2"}},
        {"heads-8", {"model.heads=8"}},
        {"heads-32", {"model.heads=32"}}},
       /*skip_unfit=*/true},
      {"rotation",
       "P learned, or the identity",
       {{"learned", {"model.learn_rotation=true"}}, {"identity", {"model.learn_rotation=false"}}}},
      {"init",
       "initial values of the paper's text, or of its authors' code",
       {{"paper", {"model.init.preset=paper"}}, {"authors", {"model.init.preset=authors"}}}},
      // Narrow: slow decay and small angles, as the paper's ListOps row; wide: nearly everything
      // possible.
      {"ranges",
       "initial decay γ in [0.9, 0.999] or [0.1, 0.9999], angle θ up to π/100 or 2π",
       {{"narrow",
         {"model.init.gamma_min=0.9", "model.init.gamma_max=0.999",
          "model.init.theta_max=0.031415926535897934"}},
        {"wide-gamma",
         {"model.init.gamma_min=0.1", "model.init.gamma_max=0.9999",
          "model.init.theta_max=0.031415926535897934"}},
        {"wide-theta",
         {"model.init.gamma_min=0.9", "model.init.gamma_max=0.999",
          "model.init.theta_max=6.283185307179586"}},
        {"wide",
         {"model.init.gamma_min=0.1", "model.init.gamma_max=0.9999",
          "model.init.theta_max=6.283185307179586"}}}},
  };
  return all;
}

const Preset& find_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  const std::string near = nearest(name, names);
  throw std::invalid_argument(
      fmt::format("--preset {}: unknown; there are {}{}", name, fmt::join(names, ", "),
                  near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

}  // namespace rotrnn
