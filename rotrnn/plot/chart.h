#pragma once

#include <string>
#include <vector>

namespace rotrnn {

/// One line of a chart, with a band of ± spread around it when that is given.
struct ChartLine {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> spread;  // empty, or as long as y
  bool dashed = false;
  int colour = -1;  // number of one; -1: that of its place
};

/// A line chart with its axes.
struct Chart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines;
  bool from_zero = true;      // else the y axis begins near the smallest value
  bool legend_below = false;  // for long names; else it is at the right
};

/// A colour as "#rrggbb": distinct in hue and lightness for the first few numbers.
std::string chart_colour(size_t number);

/// Charts side by side, `columns` in a row, as one SVG picture: no scripts, no fonts to fetch.
/// Points that are not finite are left out.
std::string to_svg(const std::vector<Chart>& charts, size_t columns);

/// Text as it may stand in XML and HTML.
std::string escape_xml(const std::string& text);

}  // namespace rotrnn
