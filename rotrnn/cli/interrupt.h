#pragma once

namespace rotrnn::cli {

/// From now on Ctrl-C and a termination signal only set a flag, for work that saves before it ends.
void catch_interrupts();

/// Whether one has come.
bool interrupted();

}  // namespace rotrnn::cli
