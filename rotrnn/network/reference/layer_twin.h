#pragma once

#include <vector>

#include "rotrnn/kernels/oracle/block_reference.h"
#include "rotrnn/spec/description.h"

/// Layers by the plain twins of the kernels. T is double; or float, as a yardstick of errors.
namespace rotrnn {

/// States of all sequences; empty: zero, or none.
template <class T>
struct TwinStatesOf {
  std::vector<T> forward, reverse;
};
using TwinStates = TwinStatesOf<double>;

/// The layer of a block, from a description and back; of a Channel, D alone.
template <class T>
void set_layer(const Description<T>& description, kernels::reference::BlockValues<T>& v);
template <class T>
Description<T> layer_of(const kernels::reference::BlockValues<T>& gradients);

/// What goes in and out of a channel layer besides u and y.
template <class T>
struct ChannelTwinStates {
  TwinStatesOf<T> initial = {};
  TwinStatesOf<T>* final = nullptr;    // forward: where they go
  TwinStatesOf<T> dfinal = {};         // backward: their gradients
  Description<T>* gradient = nullptr;  // backward: all but D
  TwinStatesOf<T>* dinitial = nullptr;
};

/// A layer whose channels do not meet, in place of a block's system. The description must outlive
/// the twin.
template <class T>
kernels::reference::LayerTwin<T> channel_twin(const Channel<T>& layer,
                                              const kernels::PackedSequences& sequences,
                                              const ChannelTwinStates<T>& states);

}  // namespace rotrnn
