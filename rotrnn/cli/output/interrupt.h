#pragma once

namespace rotrnn::cli {

/// From now on the first Ctrl-C or termination signal only sets a flag, for work that saves before
/// it ends; the second ends the program. `announce`: say so, since a step can take its time.
void catch_interrupts(bool announce = false);

/// Whether one has come.
bool interrupted();

}  // namespace rotrnn::cli
