#include "rotrnn/training/evaluate/norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kListOps[] = R"(
[task]
name = "listops"
train = 16_000
validation = 200
test = 500
[model]
width = 128
state = 256
heads = 32
[model.init]
gamma_min = 0.5
gamma_max = 0.999
theta_max = 0.031415926535897934
[training]
steps = 1000
batch = 8
global_lr = 1e-3
recurrent_lr = 1e-3
weight_decay = 0.05
warmup = 0.1
evaluate_every = 500
checkpoint_every = 100
norms_every = 20
)";

constexpr const char* kPaper[] = {"task.train=96000",
                                  "task.validation=2000",
                                  "task.test=2000",
                                  "training.steps=80000",
                                  "training.batch=32",
                                  "training.evaluate_every=1000",
                                  "training.checkpoint_every=500",
                                  "training.norms_every=400"};

struct Moments {
  double mean = 0, deviation = 0;
  double coefficient() const { return mean == 0 ? 0 : deviation / mean; }
};

Moments moments(const std::vector<double>& values) {
  Moments m;
  if (values.empty()) return m;
  const auto n = static_cast<double>(values.size());
  for (double v : values) m.mean += v / n;
  for (double v : values) m.deviation += (v - m.mean) * (v - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

double mean(const std::vector<double>& values) {
  return moments(values).mean;
}

// Row `probe` of [series][probe].
std::vector<double> column(const std::vector<std::vector<double>>& series, size_t probe) {
  std::vector<double> out;
  for (const auto& s : series) {
    if (probe < s.size()) out.push_back(s[probe]);
  }
  return out;
}

double mean_coefficient_across(const std::vector<std::vector<double>>& series) {
  std::vector<double> all;
  for (size_t i = 0; !series.empty() && i < series[0].size(); ++i) {
    all.push_back(moments(column(series, i)).coefficient());
  }
  return mean(all);
}

double mean_coefficient_along(const std::vector<std::vector<double>>& series) {
  std::vector<double> all;
  for (const auto& s : series) all.push_back(moments(s).coefficient());
  return mean(all);
}

double grand_mean(const std::vector<std::vector<double>>& series) {
  std::vector<double> all;
  for (const auto& s : series) all.push_back(mean(s));
  return mean(all);
}

using Member = std::vector<std::vector<double>> NormTrace::*;

// The one block of every seed, of one layer.
std::vector<std::vector<double>> single_blocks(const NormsResult& r, const std::string& layer,
                                               Member member) {
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < r.cells.size(); ++i) {
    if (r.cells[i].layer == layer && !r.cells[i].deep) out.push_back((r.traces[i].*member).front());
  }
  return out;
}

const NormTrace* deep_trace(const NormsResult& r, const std::string& layer) {
  for (size_t i = 0; i < r.cells.size(); ++i) {
    if (r.cells[i].layer == layer && r.cells[i].deep) return &r.traces[i];
  }
  return nullptr;
}

const NormTrace* single_trace(const NormsResult& r, const std::string& layer) {
  for (size_t i = 0; i < r.cells.size(); ++i) {
    if (r.cells[i].layer == layer && !r.cells[i].deep) return &r.traces[i];
  }
  return nullptr;
}

std::vector<std::string> layers_of(const std::vector<NormsCell>& cells) {
  std::vector<std::string> names;
  for (const NormsCell& cell : cells) {
    if (std::find(names.begin(), names.end(), cell.layer) == names.end())
      names.push_back(cell.layer);
  }
  return names;
}

NormsSummary summarise(const NormsResult& r, const std::string& layer) {
  NormsSummary s;
  s.layer = layer;
  if (const NormTrace* deep = deep_trace(r, layer)) {
    s.deep_mean = grand_mean(deep->whole);
    s.deep_head_mean = grand_mean(deep->head);
    s.over_training = mean_coefficient_along(deep->whole);
    s.over_layers = mean_coefficient_across(deep->whole);
  }
  const auto single = single_blocks(r, layer, &NormTrace::whole);
  s.single_mean = grand_mean(single);
  s.single_head_mean = grand_mean(single_blocks(r, layer, &NormTrace::head));
  s.single_over_training = mean_coefficient_along(single);
  s.over_seeds = mean_coefficient_across(single);
  return s;
}

std::vector<double> as_doubles(const std::vector<int64_t>& steps) {
  return {steps.begin(), steps.end()};
}

Chart deep_chart(const NormsResult& r, const std::string& layer, Member member,
                 const std::string& what) {
  Chart chart{
      fmt::format("(a) {}: every block, {}", layer, what), "training step", "mean norm", {}};
  const NormTrace& trace = *deep_trace(r, layer);
  for (size_t block = 0; block < (trace.*member).size(); ++block) {
    chart.lines.push_back(
        {fmt::format("block {}", block + 1), as_doubles(trace.steps), (trace.*member)[block], {}});
  }
  return chart;
}

Chart single_chart(const NormsResult& r, Member member, const std::string& what) {
  Chart chart{"(b) one block, mean ± standard deviation over seeds, " + what,
              "training step",
              "mean norm",
              {}};
  for (const std::string& layer : layers_of(r.cells)) {
    const NormTrace* any = single_trace(r, layer);
    if (any == nullptr) continue;
    const auto series = single_blocks(r, layer, member);
    ChartLine line{layer, as_doubles(any->steps), {}, {}};
    for (size_t i = 0; i < any->steps.size(); ++i) {
      const Moments m = moments(column(series, i));
      line.y.push_back(m.mean);
      line.spread.push_back(m.deviation);
    }
    chart.lines.push_back(line);
  }
  return chart;
}

}  // namespace

NormTrace read_norms(const std::filesystem::path& run) {
  const std::filesystem::path file = run / "metrics.jsonl";
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + ": cannot be read");
  NormTrace trace;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (line.is_discarded() || !line.is_object()) {
      throw std::runtime_error(fmt::format("{}:{}: is not JSON", file.string(), number));
    }
    if (line.value("split", "") != "norms") continue;
    const auto whole = line.at("whole").get<std::vector<double>>();
    const auto head = line.at("head").get<std::vector<double>>();
    trace.whole.resize(whole.size());
    trace.head.resize(head.size());
    trace.steps.push_back(line.at("step").get<int64_t>());
    for (size_t i = 0; i < whole.size(); ++i) trace.whole[i].push_back(whole[i]);
    for (size_t i = 0; i < head.size(); ++i) trace.head[i].push_back(head[i]);
  }
  if (trace.steps.empty()) {
    throw std::runtime_error(
        fmt::format("{}: has no norms; train with training.norms_every above 0", file.string()));
  }
  return trace;
}

Config norms_config(bool paper, const std::vector<std::string>& settings) {
  Config config = parse_config(kListOps, "norms");
  if (paper) {
    for (const char* setting : kPaper) apply_setting(config, setting);
  }
  for (const std::string& setting : settings) apply_setting(config, setting);
  check(config);
  return config;
}

std::vector<NormsCell> cells_of(const NormsPlan& plan) {
  if (plan.config.training.norms_every < 1) {
    throw std::invalid_argument(
        "training.norms_every is 0; set it to the number of steps between two measurements, such "
        "as --set training.norms_every=20");
  }
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (std::find(plan.layers.begin(), plan.layers.begin() + static_cast<long>(i),
                  plan.layers[i]) != plan.layers.begin() + static_cast<long>(i)) {
      throw std::invalid_argument(
          fmt::format("layer \"{}\" is named twice; once is enough", plan.layers[i]));
    }
  }
  std::vector<NormsCell> cells;
  auto add = [&](const std::string& layer, bool deep, int64_t seed) {
    NormsCell cell{layer, deep, seed, plan.config, {}};
    cell.config.model.layer = layer;
    cell.config.model.depth = deep ? plan.depth : 1;
    cell.config.training.seed = plan.config.training.seed + seed;
    check(cell.config);
    cell.run = plan.out / (deep ? layer + "-deep" : fmt::format("{}-one-seed-{}", layer, seed));
    cells.push_back(std::move(cell));
  };
  for (const std::string& layer : plan.layers) add(layer, true, 0);
  for (int64_t seed = 0; seed < plan.seeds; ++seed) {
    for (const std::string& layer : plan.layers) add(layer, false, seed);
  }
  return cells;
}

NormsResult collect_norms(const std::vector<NormsCell>& cells) {
  NormsResult result;
  result.cells = cells;
  for (const NormsCell& cell : cells) result.traces.push_back(read_norms(cell.run));
  for (const std::string& layer : layers_of(cells)) {
    result.summaries.push_back(summarise(result, layer));
  }
  return result;
}

std::vector<Chart> norms_charts(const NormsResult& r) {
  std::vector<Chart> charts;
  const std::vector<std::string> layers = layers_of(r.cells);
  for (const auto& [member, what] :
       {std::pair{&NormTrace::whole, "whole state"}, std::pair{&NormTrace::head, "per head"}}) {
    for (const std::string& layer : layers) charts.push_back(deep_chart(r, layer, member, what));
    charts.push_back(single_chart(r, member, what));
  }
  return charts;
}

std::string norms_json(const NormsResult& r, const std::string& command) {
  Json out{{"command", command}};
  for (const NormsSummary& s : r.summaries) {
    out["summary"].push_back({{"layer", s.layer},
                              {"deep_mean", s.deep_mean},
                              {"deep_head_mean", s.deep_head_mean},
                              {"variation_over_training", s.over_training},
                              {"variation_over_layers", s.over_layers},
                              {"one_block_mean", s.single_mean},
                              {"one_block_head_mean", s.single_head_mean},
                              {"one_block_variation_over_training", s.single_over_training},
                              {"one_block_variation_over_seeds", s.over_seeds}});
  }
  for (size_t i = 0; i < r.cells.size(); ++i) {
    out["runs"].push_back({{"layer", r.cells[i].layer},
                           {"deep", r.cells[i].deep},
                           {"seed", r.cells[i].config.training.seed},
                           {"steps", r.traces[i].steps},
                           {"whole", r.traces[i].whole},
                           {"head", r.traces[i].head}});
  }
  return out.dump() + "\n";
}

std::string norms_html(const NormsResult& r, const std::string& command) {
  std::string rows;
  for (const NormsSummary& s : r.summaries) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td>"
        "<td>{:.3f}</td></tr>\n",
        escape_xml(s.layer), s.deep_mean, s.over_training, s.over_layers, s.single_mean,
        s.single_over_training, s.over_seeds);
  }
  return fmt::format(
      "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
      "<title>Norms of the hidden state</title>\n"
      "<style>body{{font-family:sans-serif;margin:2em;max-width:80em}}"
      "table{{border-collapse:collapse}}td,th{{padding:.3em .8em;border-bottom:1px solid #ccc;"
      "text-align:right}}td:first-child,th:first-child{{text-align:left}}"
      "svg{{max-width:100%;height:auto}}</style></head><body>\n"
      "<h1>Norms of the hidden state over training</h1>\n"
      "<p>Mean of ‖x<sub>t</sub>‖₂ over the tokens of a few validation sequences, measured while "
      "the networks train. <em>Whole state</em> is the norm of all states of a layer; <em>per "
      "head</em> is the mean over its heads, about 1 for RotRNN by construction (its whole state: "
      "about √H). A layer without heads has one value for both.</p>\n"
      "{}"
      "<h2>How steady</h2>\n<p>Coefficients of variation: standard deviation over mean.</p>\n"
      "<table><tr><th>layer</th><th>deep: mean</th><th>variation over training</th>"
      "<th>over blocks</th><th>one block: mean</th><th>over training</th><th>over seeds</th></tr>\n"
      "{}</table>\n<p>Repeat with <code>{}</code></p>\n</body></html>\n",
      to_svg(norms_charts(r), layers_of(r.cells).size() + 1), rows, escape_xml(command));
}

}  // namespace rotrnn
