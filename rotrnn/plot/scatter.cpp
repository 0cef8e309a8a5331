#include "rotrnn/plot/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rotrnn/plot/chart.h"

namespace rotrnn {
namespace {

constexpr double kScatterWidth = 640, kScatterHeight = 420, kScatterLeft = 70, kScatterRight = 20,
                 kScatterTop = 40, kScatterBottom = 50;
constexpr double kScatterLargest = 12;  // radius

/// A logarithmic axis with a tick at every power of ten, or at 1, 2 and 5 times when it is short.
struct LogAxis {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  double begin = 0, end = 1;  // on the page

  void take(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void finish() {
    if (!(low <= high)) low = high = 1;
    low /= 1.3, high *= 1.3;
  }
  double at(double value) const {
    if (!(value > low)) return begin;
    return begin + (end - begin) * std::log(value / low) / std::log(high / low);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    const bool shortish = high / low < 100;
    for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10) {
      for (const double step : {1.0, 2.0, 5.0}) {
        if (step > 1 && !shortish) break;
        if (step * power >= low && step * power <= high) out.push_back(step * power);
      }
    }
    return out;
  }
};

}  // namespace

std::string to_svg(const Scatter& s) {
  LogAxis x, y;
  double most = 0;
  for (const ScatterPoint& p : s.points) {
    x.take(p.x), y.take(p.y);
    most = std::max(most, p.size);
  }
  x.finish(), y.finish();
  x.begin = kScatterLeft, x.end = kScatterWidth - kScatterRight,
  y.begin = kScatterHeight - kScatterBottom, y.end = kScatterTop;
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
      R"(font-family="sans-serif" font-size="12">)"
      "\n"
      R"(<rect width="{0}" height="{1}" fill="white"/>)"
      "\n",
      kScatterWidth, kScatterHeight);
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& what,
                        const std::string& more = "") {
    out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}>{}</text>)"
                       "\n",
                       at_x, at_y, anchor, more, escape_xml(what));
  };
  text(kScatterWidth / 2, 22, "middle", s.title, R"( font-size="15")");
  text((x.begin + x.end) / 2, kScatterHeight - 12, "middle", s.x_label);
  const double middle = (y.begin + y.end) / 2;
  text(18, middle, "middle", s.y_label,
       fmt::format(R"x( transform="rotate(-90 18 {:.1f})")x", middle));
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#ddd"/>)"
                       "\n",
                       x1, y1, x2, y2);
  };
  for (const double tick : x.ticks()) {
    line(x.at(tick), y.begin, x.at(tick), y.end);
    text(x.at(tick), y.begin + 16, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    line(x.begin, y.at(tick), x.end, y.at(tick));
    text(x.begin - 6, y.at(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  for (const ScatterPoint& p : s.points) {
    const double radius = most > 0 ? kScatterLargest * std::sqrt(std::max(0.0, p.size) / most) : 1;
    out +=
        fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.2f}" fill="{}" fill-opacity="0.45"/>)"
                    "\n",
                    x.at(p.x), y.at(p.y), std::max(radius, 0.8), chart_colour(0));
  }
  return out + "</svg>\n";
}

}  // namespace rotrnn
