#pragma once

#include <string>

#include "rotrnn/layers/layer.h"
#include "rotrnn/layers/liquid_s4/liquid_s4.h"
#include "rotrnn/layers/lru/lru.h"
#include "rotrnn/layers/rotrnn/rotrnn.h"
#include "rotrnn/layers/s4/s4.h"
#include "rotrnn/layers/s4d/s4d.h"
#include "rotrnn/layers/s5/s5.h"

namespace rotrnn {

/// Every layer there is.
inline constexpr LayerKind kLayerKinds[] = {
    {"rotrnn", "rotations with a decay for each head (Biegun et al. 2024)", false, check_rotrnn,
     describe_rotrnn, rotrnn_tensors, draw_rotrnn, nullptr, map_rotrnn, map_rotrnn_backward,
     recurrence_rotrnn, states_rotrnn},
    {"lru", "complex diagonal recurrence with learned radius and phase (Orvieto et al. 2023)",
     false, check_lru, describe_lru, lru_tensors, draw_lru, nullptr, map_lru, map_lru_backward,
     recurrence_lru, states_lru},
    {"s5", "HiPPO state-space model, discretised by learned time steps (Smith et al. 2023)", false,
     check_s5, describe_s5, s5_tensors, draw_s5, nullptr, map_s5, map_s5_backward, recurrence_s5,
     states_s5},
    {"s4d", "a diagonal state-space model for each channel (Gu et al. 2022)", true, check_s4d,
     describe_s4d, s4d_tensors, draw_s4d, nullptr, map_s4d, map_s4d_backward, recurrence_s4d,
     states_s4d},
    {"s4", "a diagonal-plus-low-rank HiPPO model for each channel (Gu et al. 2022)", true, check_s4,
     describe_s4, s4_tensors, draw_s4, prepare_s4, map_s4, map_s4_backward, recurrence_s4,
     states_s4},
    {"liquid_s4", "S4 with products of neighbouring inputs (Hasani et al. 2022)", true,
     check_liquid_s4, describe_liquid_s4, liquid_s4_tensors, draw_liquid_s4, prepare_liquid_s4,
     map_liquid_s4, map_liquid_s4_backward, recurrence_liquid_s4, states_liquid_s4},
};

/// The layer of that name; SettingError names all layers and the nearest one.
const LayerKind& layer_kind(const std::string& name);

}  // namespace rotrnn
