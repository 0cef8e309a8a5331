#include "rotrnn/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace rotrnn {
namespace {

// Sizes in pixels: one cell of the grid and the margins around its axes.
constexpr double kWidth = 460, kHeight = 300;
constexpr double kLeft = 56, kRight = 84, kTop = 34, kBottom = 46;  // the legend is right
constexpr double kLegendLine = 14;

// Distinct in hue and lightness, also for most who see few colours (Okabe and Ito).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#e69f00", "#000000", "#999933"};

const char* colour(size_t line) {
  return kColours[line % std::size(kColours)];
}

const char* colour(const ChartLine& line, size_t number) {
  return colour(line.colour >= 0 ? static_cast<size_t>(line.colour) : number);
}

// A line of one point is a dot, in the chart and in its legend.
bool is_point(const ChartLine& line) {
  return std::count_if(line.y.begin(), line.y.end(), [](double y) { return std::isfinite(y); }) ==
         1;
}

void draw_dot(std::string& out, double x, double y, const char* colour) {
  fmt::format_to(std::back_inserter(out), "<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='{}'/>\n", x,
                 y, colour);
}

// A legend below has a line for each name, so the chart is as much higher.
double height_of(const Chart& chart) {
  if (!chart.legend_below) return kHeight;
  return kHeight + 8 + kLegendLine * static_cast<double>(chart.lines.size());
}

struct Range {
  double low = 0, high = 0;
  bool empty = true;

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = empty ? value : std::min(low, value);
    high = empty ? value : std::max(high, value);
    empty = false;
  }
};

// A step of 1, 2 or 5 times a power of ten that divides the range into at most `most` parts.
double tick_step(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string number(double value) {
  if (value != 0 && std::abs(value) >= 1000 && std::fmod(value, 1000) == 0) {
    return fmt::format("{:g}k", value / 1000);
  }
  return fmt::format("{:g}", value);
}

// From data to pixels, with the axes' ends at ticks.
struct Frame {
  double x_low, x_high, y_low = 0, y_high, x_step, y_step;
  double left, top, width, height;

  double x(double value) const { return left + (value - x_low) / (x_high - x_low) * width; }
  double y(double value) const {
    return top + height - (value - y_low) / (y_high - y_low) * height;
  }
};

Frame make_frame(const Chart& chart, double left, double top) {
  Range x, y;
  for (const ChartLine& line : chart.lines) {
    for (size_t i = 0; i < line.y.size(); ++i) {
      const double spread = line.spread.empty() ? 0 : line.spread[i];
      x.add(line.x[i]);
      y.add(line.y[i] + (std::isfinite(spread) ? spread : 0));
      if (!chart.from_zero) y.add(line.y[i] - (std::isfinite(spread) ? spread : 0));
    }
  }
  Frame f;
  f.x_low = x.low;
  f.x_high = x.high > x.low ? x.high : x.low + 1;
  f.x_step = tick_step(f.x_high - f.x_low, 6);
  if (chart.from_zero || y.empty) {
    const double top_value = y.high > 0 ? y.high : 1;
    f.y_step = tick_step(top_value, 6);
    f.y_high = std::ceil(top_value / f.y_step * (1 - 1e-9)) * f.y_step;
  } else {
    const double range = y.high > y.low ? y.high - y.low : std::max(1e-9, std::abs(y.low));
    f.y_step = tick_step(range, 6);
    f.y_low = std::floor(y.low / f.y_step + 1e-9) * f.y_step;
    f.y_high = std::max(std::ceil(y.high / f.y_step - 1e-9) * f.y_step, f.y_low + f.y_step);
  }
  f.left = left + kLeft;
  f.top = top + kTop;
  f.width = kWidth - kLeft - (chart.legend_below ? 16 : kRight);
  f.height = kHeight - kTop - kBottom;
  return f;
}

void draw_axes(std::string& out, const Chart& chart, const Frame& f) {
  auto to = std::back_inserter(out);
  const double bottom = f.top + f.height, right = f.left + f.width;
  const auto ticks = static_cast<int>(std::llround((f.y_high - f.y_low) / f.y_step));
  for (int i = 0; i <= ticks; ++i) {
    double v = f.y_low + i * f.y_step;
    if (std::abs(v) < 1e-9 * f.y_step) v = 0;
    fmt::format_to(to,
                   "<line x1='{0:.1f}' y1='{2:.1f}' x2='{1:.1f}' y2='{2:.1f}' stroke='#ddd'/>"
                   "<text x='{3:.1f}' y='{4:.1f}' text-anchor='end'>{5}</text>\n",
                   f.left, right, f.y(v), f.left - 6, f.y(v) + 4, number(v));
  }
  for (double v = std::ceil(f.x_low / f.x_step) * f.x_step; v <= f.x_high + f.x_step * 1e-6;
       v += f.x_step) {
    fmt::format_to(to,
                   "<line x1='{0:.1f}' y1='{1:.1f}' x2='{0:.1f}' y2='{2:.1f}' stroke='#444'/>"
                   "<text x='{0:.1f}' y='{3:.1f}' text-anchor='middle'>{4}</text>\n",
                   f.x(v), bottom, bottom + 4, bottom + 17, number(v));
  }
  fmt::format_to(to,
                 "<path d='M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}' fill='none' stroke='#444'/>\n"
                 "<text x='{4:.1f}' y='{5:.1f}' text-anchor='middle'>{6}</text>\n"
                 "<text x='{7:.1f}' y='{8:.1f}' text-anchor='middle' "
                 "transform='rotate(-90 {7:.1f} {8:.1f})'>{9}</text>\n"
                 "<text x='{4:.1f}' y='{10:.1f}' text-anchor='middle' font-weight='bold'>{11}"
                 "</text>\n",
                 f.left, f.top, bottom, right, f.left + f.width / 2, bottom + 36,
                 escape_xml(chart.x_label), f.left - 42, f.top + f.height / 2,
                 escape_xml(chart.y_label), f.top - 14, escape_xml(chart.title));
}

// With a bar for its band.
void draw_point(std::string& out, const ChartLine& line, const char* colour, const Frame& f) {
  const auto first =
      std::find_if(line.y.begin(), line.y.end(), [](double y) { return std::isfinite(y); });
  const auto i = static_cast<size_t>(first - line.y.begin());
  const double x = f.x(line.x[i]), y = line.y[i];
  draw_dot(out, x, f.y(y), colour);
  if (line.spread.empty() || !(line.spread[i] > 0)) return;
  fmt::format_to(std::back_inserter(out),
                 "<line x1='{0:.1f}' y1='{1:.1f}' x2='{0:.1f}' y2='{2:.1f}' stroke='{3}'/>\n", x,
                 f.y(y + line.spread[i]), f.y(std::max(f.y_low, y - line.spread[i])), colour);
}

void draw_line(std::string& out, const ChartLine& line, size_t number, const Frame& f) {
  if (is_point(line)) {
    draw_point(out, line, colour(line, number), f);
    return;
  }
  auto to = std::back_inserter(out);
  std::string path, upper, lower;
  for (size_t i = 0; i < line.y.size(); ++i) {
    if (!std::isfinite(line.y[i])) continue;
    const double x = f.x(line.x[i]);
    path += fmt::format("{:.1f},{:.1f} ", x, f.y(line.y[i]));
    if (line.spread.empty() || !std::isfinite(line.spread[i])) continue;
    upper += fmt::format("{:.1f},{:.1f} ", x, f.y(line.y[i] + line.spread[i]));
    lower = fmt::format("{:.1f},{:.1f} ", x, f.y(std::max(f.y_low, line.y[i] - line.spread[i]))) +
            lower;
  }
  if (!upper.empty()) {
    fmt::format_to(to, "<polygon points='{}{}' fill='{}' fill-opacity='0.2'/>\n", upper, lower,
                   colour(line, number));
  }
  fmt::format_to(to, "<polyline points='{}' fill='none' stroke='{}' stroke-width='1.6'{}/>\n", path,
                 colour(line, number), line.dashed ? " stroke-dasharray='5 3'" : "");
}

void draw_legend(std::string& out, const Chart& chart, const Frame& f) {
  auto to = std::back_inserter(out);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    const double y = f.top + 12 + kLegendLine * static_cast<double>(i) +
                     (chart.legend_below ? f.height + kBottom - 4 : 0);
    const double x = chart.legend_below ? f.left : f.left + f.width + 8;
    if (is_point(line)) {
      draw_dot(out, x + 8, y - 4, colour(line, i));
    } else {
      fmt::format_to(to,
                     "<line x1='{0:.1f}' y1='{2:.1f}' x2='{1:.1f}' y2='{2:.1f}' stroke='{3}' "
                     "stroke-width='2'{4}/>",
                     x, x + 16, y - 4, colour(line, i),
                     line.dashed ? " stroke-dasharray='5 3'" : "");
    }
    fmt::format_to(to, "<text x='{:.1f}' y='{:.1f}'>{}</text>\n", x + 21, y, escape_xml(line.name));
  }
}

}  // namespace

std::string chart_colour(size_t number) {
  return colour(number);
}

std::string escape_xml(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string to_svg(const std::vector<Chart>& charts, size_t columns) {
  columns = std::max<size_t>(1, std::min(columns, charts.size()));
  const size_t rows = (charts.size() + columns - 1) / columns;
  const double width = kWidth * static_cast<double>(columns);
  double cell = kHeight;
  for (const Chart& chart : charts) cell = std::max(cell, height_of(chart));
  const double height = cell * static_cast<double>(rows);
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:g} {1:g}' width='{0:g}' "
      "height='{1:g}' font-family='sans-serif' font-size='11'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  for (size_t i = 0; i < charts.size(); ++i) {
    const Frame frame = make_frame(charts[i], kWidth * static_cast<double>(i % columns),
                                   cell * static_cast<double>(i / columns));
    draw_axes(out, charts[i], frame);
    for (size_t line = 0; line < charts[i].lines.size(); ++line) {
      draw_line(out, charts[i].lines[line], line, frame);
    }
    draw_legend(out, charts[i], frame);
  }
  return out + "</svg>\n";
}

}  // namespace rotrnn
