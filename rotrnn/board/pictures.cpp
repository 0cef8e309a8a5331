#include "rotrnn/board/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "rotrnn/plot/chart.h"

namespace rotrnn::board {
namespace {

constexpr size_t kPoints = 600;  // of a line
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Line {
  const char *series, *part;
};
struct ChartKind {
  const char *name, *title, *y_label;
  std::vector<Line> lines;  // empty: a line for each block
  const char* blocks = "";
  double scale = 1;
  bool from_zero = false;
};

const std::vector<ChartKind>& chart_kinds() {
  static const std::vector<ChartKind> kinds{
      {"loss", "Loss", "loss", {{"train.loss", "train"}, {"validation.loss", "validation"}}},
      {"accuracy",
       "Accuracy",
       "%",
       {{"validation.accuracy", "validation"}, {"test.accuracy", "test"}},
       "",
       100},
      {"error",
       "Mean absolute error",
       "error",
       {{"validation.mae", "validation"}, {"test.mae", "test"}}},
      {"learning_rates",
       "Learning rates",
       "rate",
       {{"train.global_lr", "global"}, {"train.recurrent_lr", "recurrent"}},
       "",
       1,
       true},
      {"gradient_norm", "Gradient norm", "norm", {{"train.gradient_norm", ""}}},
      {"hidden_norm", "Norm of the hidden state, by block", "mean norm", {}, "norms.whole."},
      {"hidden_norm_head",
       "Norm of the hidden state per head, by block",
       "mean norm",
       {},
       "norms.head."},
      {"tokens_per_second",
       "Tokens per second",
       "tokens/s",
       {{"train.tokens_per_second", ""}},
       "",
       1,
       true},
      {"memory", "Memory", "MB", {{"train.memory_mb", ""}}, "", 1, true},
  };
  return kinds;
}

// What is one line: a run, or runs that differ only in the seed.
struct LineOfRuns {
  std::string name;
  std::vector<const ReportRun*> runs;
};

std::vector<LineOfRuns> group(const std::vector<ReportRun>& runs) {
  std::vector<LineOfRuns> out;
  std::vector<std::string> keys;
  for (const ReportRun& run : runs) {
    const auto found = std::find(keys.begin(), keys.end(), run.info.group);
    if (found != keys.end() && !run.info.group.empty()) {
      out[static_cast<size_t>(found - keys.begin())].runs.push_back(&run);
      continue;
    }
    keys.push_back(run.info.group);
    out.push_back({run.info.name, {&run}});
  }
  for (LineOfRuns& line : out) {
    if (line.runs.size() > 1) {
      line.name = fmt::format("{} ({} seeds)", line.runs[0]->info.group_name, line.runs.size());
    }
  }
  return out;
}

std::optional<double> value_at(const Curve& c, double step) {
  const auto above = std::lower_bound(c.step.begin(), c.step.end(), step);
  if (above == c.step.end() || step < c.step.front()) return std::nullopt;
  const auto i = static_cast<size_t>(above - c.step.begin());
  if (*above == step) return c.value[i];
  const double part = (step - c.step[i - 1]) / (c.step[i] - c.step[i - 1]);
  return c.value[i - 1] + part * (c.value[i] - c.value[i - 1]);
}

std::optional<Curve> curve_of(const LineOfRuns& line, const std::string& series) {
  std::vector<Curve> curves;
  for (const ReportRun* run : line.runs) {
    const auto found = run->metrics.series().find(series);
    if (found == run->metrics.series().end() || found->second.size() == 0) continue;
    const Decimated d = found->second.decimate(0, kInfinity, kPoints);
    curves.push_back({d.step, d.value, {}});
  }
  if (curves.empty()) return std::nullopt;
  return curves.size() == 1 ? curves[0] : spread_of(curves, kPoints);
}

void add_line(Chart& chart, const Curve& curve, const std::string& name, double scale, int colour,
              bool dashed) {
  ChartLine line{name, curve.step, curve.value, curve.deviation};
  for (double& v : line.y) v *= scale;
  for (double& v : line.spread) v *= scale;
  line.dashed = dashed;
  line.colour = colour;
  chart.lines.push_back(std::move(line));
}

Chart make_chart(const ChartKind& kind, const std::vector<LineOfRuns>& lines) {
  Chart chart{kind.title, "training step", kind.y_label, {}};
  chart.from_zero = kind.from_zero;
  chart.legend_below = true;
  for (size_t i = 0; i < lines.size(); ++i) {
    const LineOfRuns& line = lines[i];
    for (size_t k = 0; k < kind.lines.size(); ++k) {
      const auto curve = curve_of(line, kind.lines[k].series);
      const std::string part = kind.lines[k].part;
      if (curve) {
        add_line(chart, *curve, part.empty() ? line.name : line.name + ", " + part, kind.scale,
                 static_cast<int>(i), k > 0);
      }
    }
    for (size_t block = 0; kind.lines.empty(); ++block) {
      const auto curve = curve_of(line, fmt::format("{}{}", kind.blocks, block));
      if (!curve) break;
      add_line(chart, *curve, fmt::format("{}, block {}", line.name, block + 1), 1,
               static_cast<int>(lines.size() == 1 ? block : i), lines.size() > 1 && block % 2 == 1);
    }
  }
  return chart;
}

std::string svg_head(double width, double height) {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:g} {1:g}' width='{0:g}' "
      "height='{1:g}' font-family='sans-serif' font-size='11'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
}

std::string title_text(const std::string& title, double x) {
  return fmt::format("<text x='{:g}' y='18' text-anchor='middle' font-weight='bold'>{}</text>\n", x,
                     escape_xml(title));
}

// A disk for each block: where the eigenvalues are, and the way they came.
std::string draw_lambda(const Metrics& metrics, const std::string& title) {
  constexpr double kCell = 240, kRadius = 100, kTop = 28;
  const auto& frames = metrics.lambda();
  const LambdaFrame& last = frames.back();
  const size_t layers = last.layers.size(), columns = std::min<size_t>(layers, 4);
  const double width = kCell * static_cast<double>(columns);
  const double height = kTop + (kCell + 6) * static_cast<double>((layers + columns - 1) / columns);
  std::string out = svg_head(width, height) + title_text(title, width / 2);
  auto to = std::back_inserter(out);
  for (size_t k = 0; k < layers; ++k) {
    const double x = kCell * (static_cast<double>(k % columns) + 0.5);
    const double y = kTop + (kCell + 6) * static_cast<double>(k / columns) + kCell / 2 - 6;
    fmt::format_to(to,
                   "<circle cx='{0:g}' cy='{1:g}' r='{2:g}' fill='none' stroke='#666'/>"
                   "<circle cx='{0:g}' cy='{1:g}' r='{3:g}' fill='none' stroke='#ddd'/>"
                   "<path d='M{4:g} {1:g}H{5:g}M{0:g} {6:g}V{7:g}' stroke='#ddd'/>"
                   "<text x='{0:g}' y='{8:g}' text-anchor='middle'>block {9}</text>\n",
                   x, y, kRadius, kRadius / 2, x - kRadius * 1.08, x + kRadius * 1.08,
                   y - kRadius * 1.08, y + kRadius * 1.08, y + kRadius + 22, k + 1);
    const std::vector<float>& now = last.layers[k];
    for (size_t i = 0; i + 1 < now.size(); i += 2) {
      std::string way;
      for (const LambdaFrame& frame : frames) {
        if (frame.layers.size() <= k || frame.layers[k].size() != now.size()) continue;
        const double re = std::clamp(double{frame.layers[k][i]}, -1.15, 1.15);
        const double im = std::clamp(double{frame.layers[k][i + 1]}, -1.15, 1.15);
        way += fmt::format("{:.1f},{:.1f} ", x + kRadius * re, y - kRadius * im);
      }
      const size_t space = way.rfind(' ', way.size() - 2);
      const std::string end = way.substr(space == std::string::npos ? 0 : space + 1);
      const size_t comma = end.find(',');
      fmt::format_to(to,
                     "<polyline points='{}' fill='none' stroke='{}' stroke-opacity='0.35'/>"
                     "<circle cx='{}' cy='{}' r='2.2' fill='{}'/>\n",
                     way, chart_colour(0), end.substr(0, comma),
                     end.substr(comma + 1, end.size() - comma - 2), chart_colour(0));
    }
  }
  return out + "</svg>\n";
}

std::string draw_confusion(const Confusion& c, const std::string& title) {
  const size_t n = c.counts.size();
  const double cell = n <= 12 ? 38 : n <= 24 ? 26 : 16, left = 110, top = 76;
  const double width = left + cell * static_cast<double>(n) + 20;
  const double height = top + cell * static_cast<double>(n) + 20;
  std::string out = svg_head(std::max(width, 380.0), height);
  out += title_text(title, std::max(width, 380.0) / 2);
  auto to = std::back_inserter(out);
  const auto name = [&](size_t i) {
    std::string text = c.classes.empty() ? std::to_string(i) : c.classes[i];
    return escape_xml(text);
  };
  for (size_t i = 0; i < n; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * cell;
    fmt::format_to(to,
                   "<text x='{0:g}' y='{1:g}' text-anchor='end' font-size='10'>{2}</text>"
                   "<text x='{3:g}' y='{4:g}' font-size='10' transform='rotate(-45 {3:g} {4:g})'>"
                   "{2}</text>\n",
                   left - 6, top + at + 4, name(i), left + at, top - 6);
    double sum = 0;
    for (const int64_t count : c.counts[i]) sum += static_cast<double>(count);
    for (size_t j = 0; j < n; ++j) {
      const double part = sum > 0 ? static_cast<double>(c.counts[i][j]) / sum : 0;
      fmt::format_to(to,
                     "<rect x='{:g}' y='{:g}' width='{:g}' height='{:g}' fill='{}' "
                     "fill-opacity='{:.3f}' stroke='#eee'/>",
                     left + cell * static_cast<double>(j), top + cell * static_cast<double>(i),
                     cell, cell, chart_colour(0), part);
      if (cell < 20) continue;
      fmt::format_to(to,
                     "<text x='{:g}' y='{:g}' text-anchor='middle' font-size='9' "
                     "fill='{}'>{}</text>\n",
                     left + cell * (static_cast<double>(j) + 0.5), top + at + 3,
                     part > 0.6 ? "white" : "black", c.counts[i][j]);
    }
  }
  return out + "</svg>\n";
}

}  // namespace

Curve spread_of(const std::vector<Curve>& curves, size_t most) {
  std::vector<double> steps;
  for (const Curve& c : curves) steps.insert(steps.end(), c.step.begin(), c.step.end());
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  const size_t n = steps.size(), kept = std::min(n, std::max<size_t>(most, 2));
  Curve out;
  for (size_t i = 0; i < kept; ++i) {
    const double step = steps[kept < 2 ? 0 : i * (n - 1) / (kept - 1)];
    std::vector<double> values;
    for (const Curve& c : curves) {
      if (const auto value = value_at(c, step)) values.push_back(*value);
    }
    if (values.empty()) continue;
    const auto count = static_cast<double>(values.size());
    double mean = 0, square = 0;
    for (const double v : values) mean += v / count;
    for (const double v : values) square += (v - mean) * (v - mean);
    out.step.push_back(step);
    out.value.push_back(mean);
    out.deviation.push_back(values.size() > 1 ? std::sqrt(square / (count - 1)) : 0);
  }
  return out;
}

std::vector<Picture> draw_pictures(const std::vector<ReportRun>& runs) {
  std::vector<Picture> out;
  const std::vector<LineOfRuns> lines = group(runs);
  for (const ChartKind& kind : chart_kinds()) {
    const Chart chart = make_chart(kind, lines);
    if (!chart.lines.empty()) out.push_back({kind.name, kind.title, to_svg({chart}, 1)});
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const Metrics& metrics = runs[i].metrics;
    const std::string& name = runs[i].info.name;
    if (!metrics.lambda().empty() && !metrics.lambda().back().layers.empty()) {
      const std::string title =
          fmt::format("{}: eigenvalues, step {}", name, metrics.lambda().back().step);
      out.push_back({fmt::format("eigenvalues-{}", i + 1), title, draw_lambda(metrics, title)});
    }
    for (const auto& [split, confusion] : metrics.confusion()) {
      const std::string title =
          fmt::format("{}: confusion, {}, step {}", name, split, confusion.step);
      out.push_back(
          {fmt::format("confusion-{}-{}", i + 1, split), title, draw_confusion(confusion, title)});
    }
  }
  return out;
}

}  // namespace rotrnn::board
