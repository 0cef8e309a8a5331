#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rotrnn/board/metrics.h"
#include "rotrnn/board/runs.h"

namespace rotrnn::board {

/// A run with what it wrote.
struct ReportRun {
  RunInfo info;
  Metrics metrics;
};

/// A picture: the name of its file, without ".svg", and the SVG.
struct Picture {
  std::string name, title, svg;
};

/// Points of a curve, with a standard deviation when it is the mean of several.
struct Curve {
  std::vector<double> step, value, deviation;
};

/// Mean and standard deviation (n - 1) of several curves at all of their steps (at most `most`),
/// each on the straight lines between its points, of those that reach there.
Curve spread_of(const std::vector<Curve>& curves, size_t most);

/// Every chart that the runs have data for. Runs that differ only in the seed are one line.
std::vector<Picture> draw_pictures(const std::vector<ReportRun>& runs);

}  // namespace rotrnn::board
