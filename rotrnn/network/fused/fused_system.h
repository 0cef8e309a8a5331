#pragma once

#include "rotrnn/kernels/block/block.h"
#include "rotrnn/spec/description.h"

namespace rotrnn {

/// A description as the fused block takes it; of a Channel, D alone: a SequenceLayer does the rest.
kernels::DiagonalLayer fused_layer(const Description<float>& description);

/// Sizes a gradient like its description (of a Channel: D alone) and sets where the block puts it.
void set_gradient(const Description<float>& like, Description<float>& gradient,
                  kernels::BlockGradients& out);

}  // namespace rotrnn
