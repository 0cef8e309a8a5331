#pragma once

namespace rotrnn::cli {

/// From now on Ctrl-C and SIGTERM ask for a stop instead of killing the program.
void watch_for_stop();

/// True once a stop was asked for.
bool stop_requested();

}  // namespace rotrnn::cli
