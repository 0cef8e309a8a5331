#pragma once

#include "rotrnn/data/examples.h"
#include "rotrnn/network/network.h"

namespace rotrnn {

/// Learns mean and standard deviation of every number of a token of the network's front end, over
/// all tokens of these examples; nothing where it standardises none. The same bits for any number
/// of threads.
void learn_frontend(Network& network, const Examples& examples);

}  // namespace rotrnn
