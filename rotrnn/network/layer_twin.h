#pragma once

#include <vector>

#include "rotrnn/kernels/reference.h"
#include "rotrnn/spec/description.h"

/// Layers by the plain twins of the kernels, in double.
namespace rotrnn {

/// States of all sequences; empty: zero, or none.
struct TwinStates {
  std::vector<double> forward, reverse;
};

/// The system of a block, from a description and back; of a Channel, D alone.
void set_system(const Description<double>& description, kernels::reference::BlockValues<double>& v);
Description<double> system_of(const Description<double>& like,
                              const kernels::reference::BlockValues<double>& gradients);

/// What goes in and out of a channel layer besides u and y.
struct ChannelTwinStates {
  TwinStates initial = {};
  TwinStates* final = nullptr;              // forward: where they go
  TwinStates dfinal = {};                   // backward: their gradients
  Description<double>* gradient = nullptr;  // backward: all but D
  TwinStates* dinitial = nullptr;
};

/// A layer whose channels do not meet, in place of a block's system. The description must outlive
/// the twin.
kernels::reference::LayerTwin<double> channel_twin(const Channel<double>& layer,
                                                   const kernels::Sequences& sequences,
                                                   const ChannelTwinStates& states);

}  // namespace rotrnn
