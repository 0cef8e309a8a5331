#pragma once

#include <string>
#include <vector>

namespace rotrnn {

/// A point of a scatter plot; its area grows with its size.
struct ScatterPoint {
  double x = 0, y = 0, size = 1;
};

/// Points on two logarithmic axes. What is not above 0 in x stands at the left border.
struct Scatter {
  std::string title, x_label, y_label;
  std::vector<ScatterPoint> points;
};

/// One SVG picture: no scripts, no fonts to fetch.
std::string to_svg(const Scatter& scatter);

}  // namespace rotrnn
