#pragma once

#include <string>
#include <vector>

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/layers/setting_error.h"

// What reading a config asks of the layers, without linking the layers themselves.

namespace rotrnn {

/// The names of the table in layer_table.h, in its order.
std::vector<std::string> layer_names();

/// The place of a layer in the table; SettingError names all layers and the nearest one.
size_t layer_index(const std::string& name);

/// The summary of a layer by its name.
std::string layer_summary(const std::string& name);

/// Whether every channel of the layer in use has a state of its own.
bool has_channels(const LayerOptions& options);

/// The sizes of the layer in use, in words.
std::string describe_layer(const LayerOptions& options);

/// Checks the name, the settings of every layer, and the sizes of the one in use.
void check_layers(const LayerOptions& options);

}  // namespace rotrnn
