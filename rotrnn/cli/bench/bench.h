#pragma once

#include "rotrnn/cli/command.h"

namespace rotrnn::cli {

/// Adds `bench loader`.
void add_bench_loader(CLI::App& bench, Action& action);

/// Adds `bench messages`.
void add_bench_messages(CLI::App& bench, Action& action);

/// Adds `bench stream`.
void add_bench_stream(CLI::App& bench, Action& action);

/// Adds `bench score`.
void add_bench_score(CLI::App& bench, Action& action);

}  // namespace rotrnn::cli
