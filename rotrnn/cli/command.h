#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>
#include <vector>

#include "rotrnn/network/engine.h"

namespace rotrnn::cli {

/// What to do once the command line is parsed; returns the exit code.
using Action = std::function<int()>;

// One function per subcommand: declares its options, and sets `action` when it is chosen.
void add_train(CLI::App& app, Action& action);
void add_fit(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_init(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_norms(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_stream(CLI::App& app, Action& action);
/// `started`: what follows "--", to be run by every process.
void add_launch(CLI::App& app, Action& action, const std::vector<std::string>& started);
void add_board(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);

/// Declares --threads and --kernels, for commands that run a network.
void add_engine_options(CLI::App& command, EngineOptions& engine);

}  // namespace rotrnn::cli
