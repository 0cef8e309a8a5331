#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/layers/setting_error.h"

// Free of LibTorch, so that reading a config is. A new layer is its files and a line of the table.

namespace rotrnn {

class Layer;

/// What the program knows of a layer.
struct LayerEntry {
  const char* name;     // as in model.layer
  const char* summary;  // one line
  bool channels;        // every channel has a state of its own (channel.h); else one for all
  /// Throws SettingError; sizes are checked only of the layer in use.
  void (*check)(const LayerOptions&, bool sizes);
  /// The sizes in words, such as "state 256, 32 heads".
  std::string (*describe)(const LayerOptions&);
  /// Draws the initial values: a pure function of (seed, stream).
  std::shared_ptr<Layer> (*make)(const LayerOptions&, uint64_t seed, uint64_t stream);
};

// The first two of a layer are in its options' file, the last beside the layer itself, with
// LibTorch.
void check_rotrnn(const LayerOptions& options, bool sizes);
void check_lru(const LayerOptions& options, bool sizes);
void check_s5(const LayerOptions& options, bool sizes);
void check_s4d(const LayerOptions& options, bool sizes);
void check_s4(const LayerOptions& options, bool sizes);
void check_liquid_s4(const LayerOptions& options, bool sizes);
std::string describe_rotrnn(const LayerOptions& options);
std::string describe_lru(const LayerOptions& options);
std::string describe_s5(const LayerOptions& options);
std::string describe_s4d(const LayerOptions& options);
std::string describe_s4(const LayerOptions& options);
std::string describe_liquid_s4(const LayerOptions& options);
std::shared_ptr<Layer> make_rotrnn(const LayerOptions& options, uint64_t seed, uint64_t stream);
std::shared_ptr<Layer> make_lru(const LayerOptions& options, uint64_t seed, uint64_t stream);
std::shared_ptr<Layer> make_s5(const LayerOptions& options, uint64_t seed, uint64_t stream);
std::shared_ptr<Layer> make_s4d(const LayerOptions& options, uint64_t seed, uint64_t stream);
std::shared_ptr<Layer> make_s4(const LayerOptions& options, uint64_t seed, uint64_t stream);
std::shared_ptr<Layer> make_liquid_s4(const LayerOptions& options, uint64_t seed, uint64_t stream);

/// Every layer there is.
inline constexpr LayerEntry kLayers[] = {
    {"rotrnn", "rotations with a decay for each head (Biegun et al. 2024)", false, check_rotrnn,
     describe_rotrnn, make_rotrnn},
    {"lru", "complex diagonal recurrence with learned radius and phase (Orvieto et al. 2023)",
     false, check_lru, describe_lru, make_lru},
    {"s5", "HiPPO state-space model, discretised by learned time steps (Smith et al. 2023)", false,
     check_s5, describe_s5, make_s5},
    {"s4d", "a diagonal state-space model for each channel (Gu et al. 2022)", true, check_s4d,
     describe_s4d, make_s4d},
    {"s4", "a diagonal-plus-low-rank HiPPO model for each channel (Gu et al. 2022)", true, check_s4,
     describe_s4, make_s4},
    {"liquid_s4", "S4 with products of neighbouring inputs (Hasani et al. 2022)", true,
     check_liquid_s4, describe_liquid_s4, make_liquid_s4},
};

/// The names of the table, in its order.
std::vector<std::string> layer_names();

/// The summary of a layer by its name; SettingError names all layers and the nearest one.
std::string layer_summary(const std::string& name);

/// Whether every channel of the layer in use has a state of its own.
bool has_channels(const LayerOptions& options);

/// The sizes of the layer in use, in words.
std::string describe_layer(const LayerOptions& options);

/// Checks the name, the settings of every layer, and the sizes of the one in use.
void check_layers(const LayerOptions& options);

}  // namespace rotrnn
