#include "rotrnn/training/init/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "rotrnn/base/text/number.h"
#include "rotrnn/base/text/utf8.h"

namespace rotrnn {
namespace {

constexpr int64_t kLeastExamples = 20;    // in train, or nothing can be learned
constexpr int64_t kLeastSteps = 200;      // the same of a series that is to be forecast
constexpr int64_t kLongText = 2048;       // longer texts are cut: their beginnings say most
constexpr int64_t kLongSound = 8192;      // steps above which sound is thinned out
constexpr int64_t kLeastRate = 4000;      // samples per second that speech needs
constexpr int64_t kFrontendRate = 1000;   // samples per second from which rotations make the tokens
constexpr int64_t kLeastFrames = 16;      // tokens that must be left of a sequence
constexpr int64_t kMostBands = 256;       // numbers of a token
constexpr int64_t kLongSeries = 4096;     // steps above which patches are worth a try
constexpr int64_t kMostTokens = 65536;    // of a step: more take memory and learn no more
constexpr double kDefaultMinutes = 30;    // that users are willing to wait
constexpr double kEvaluationShare = 0.1;  // of the time that evaluations may take
constexpr int64_t kEvaluations = 20;      // points of the curve, at most

DataKind kind_of(const TaskOptions& task, const TaskData& data) {
  const std::string& name = task.name;
  if (name == "listops") return DataKind::lists;
  if (data.facts.shape.input == InputKind::tokens) return DataKind::text;
  if (name == "audio_folder" || name == "speech_commands") return DataKind::sound;
  for (const char* pictures : {"mnist", "image", "pathfinder", "pathx", "image_folder", "idx"}) {
    if (name == pictures) return DataKind::pictures;
  }
  return DataKind::series;
}

int64_t share_of(const std::vector<int64_t>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

// A round number that is close enough.
int64_t rounded(double number) {
  const double unit = number < 100 ? 1 : number < 1000 ? 10 : 100;
  return std::max<int64_t>(1, static_cast<int64_t>(std::llround(number / unit) * unit));
}

// Steps that are once over all examples.
double epoch_of(const Suggestion& s, const DataFacts& facts) {
  const TrainingOptions& t = s.config.training;
  const double per_step = t.batch_tokens > 0 ? static_cast<double>(t.batch_tokens) / s.length
                                             : static_cast<double>(t.batch);
  return std::max(1.0, static_cast<double>(facts.train) / per_step);
}

std::string over_text(double epochs) {
  if (epochs < 1) return fmt::format("{:.0f} % of all examples once", 100 * epochs);
  return fmt::format("about {:.0f} times over all examples", epochs);
}

// Chooses the settings one after the other, each with its reason.
class Chooser {
 public:
  Chooser(const Guess& guess, const DataFacts& facts) : facts_(facts) {
    out_.config.task = guess.task;
    out_.reasons = guess.reasons;
    out_.advice = guess.advice;
  }

  Suggestion choose() {
    check();
    choose_frontend();
    choose_length();
    choose_size();
    choose_start();
    choose_training();
    advise();
    return std::move(out_);
  }

 private:
  void say(const std::string& key, const std::string& why) {
    const auto found = std::find_if(out_.reasons.begin(), out_.reasons.end(),
                                    [&](const Reason& r) { return r.key == key; });
    if (found != out_.reasons.end()) {
      found->why = why;
      return;
    }
    const std::string section = key.substr(0, key.rfind('.'));
    auto place = std::find_if(out_.reasons.rbegin(), out_.reasons.rend(), [&](const Reason& r) {
      return r.key.substr(0, r.key.rfind('.')) == section;
    });
    out_.reasons.insert(place == out_.reasons.rend() ? out_.reasons.end() : place.base(),
                        {key, why});
  }

  void check() const {
    const std::string& path = out_.config.task.path;
    if (facts_.shape.target == TargetKind::classes && facts_.classes.size() < 2) {
      throw std::runtime_error(
          fmt::format("{}: all examples have the same label, \"{}\"; there is nothing to "
                      "learn. One folder per "
                      "class, task.label_pattern or task.label_column define the classes",
                      path, facts_.classes.empty() ? "" : facts_.classes[0]));
    }
    const bool forecast = out_.config.task.target == TaskTarget::forecast;
    if (forecast && facts_.tokens < kLeastSteps) {
      throw std::runtime_error(fmt::format(
          "{}: {} steps to learn a forecast from are too few; there should be {} or more", path,
          facts_.tokens, kLeastSteps));
    }
    if (!forecast && facts_.train < kLeastExamples) {
      throw std::runtime_error(fmt::format(
          "{}: {} examples to train on, {} for validation and {} for the test are too few to learn "
          "from; there should be {} or more to train on",
          path, facts_.train, facts_.validation, facts_.test, kLeastExamples));
    }
    if (facts_.shape.target == TargetKind::classes && !facts_.shape.per_token &&
        facts_.train < 2 * std::ssize(facts_.classes)) {
      throw std::runtime_error(fmt::format(
          "{}: {} classes among {} examples to train on; there should be several of each. Is the "
          "column or name of the class the right one?",
          path, facts_.classes.size(), facts_.train));
    }
  }

  // There are too many raw samples, and each holds little of what separates the classes.
  void choose_frontend() {
    const DataShape& shape = facts_.shape;
    if (shape.input != InputKind::channels || shape.per_token || facts_.rate < kFrontendRate)
      return;
    FrontendOptions f;
    f.kind = FrontendKind::rotations;
    f.bands = std::clamp<int64_t>(kMostBands / shape.inputs / 8 * 8, 8, 64);
    const auto rate =
        static_cast<double>(facts_.rate) / static_cast<double>(out_.config.task.keep_every);
    f = resolve_frontend(f, rate);
    f.low = std::round(f.low), f.high = std::round(f.high);
    f.hop = std::min(f.hop, std::max<int64_t>(1, facts_.median / shape.towers / kLeastFrames));
    out_.config.model.frontend = f;
    say("frontend.kind", "a token is the loudness of each band; none: every sample is a token");
    say("frontend.hop", fmt::format("samples of a token: {:.3g} ms", 1000 * f.hop / rate));
    say("frontend.bands", "rotations per channel: more separate closer frequencies");
    say("frontend.low", "Hz, of the first");
    say("frontend.high", "and of the last, at most half the sample rate");
  }

  // Tokens of so many samples.
  double tokens_of(double samples) const {
    const FrontendOptions& f = out_.config.model.frontend;
    return f.used() ? std::max(1.0, samples / static_cast<double>(f.hop)) : samples;
  }

  void choose_length() {
    TaskOptions& task = out_.config.task;
    length_ = facts_.median;
    mean_ = static_cast<double>(facts_.tokens) / static_cast<double>(facts_.train);
    if (facts_.kind == DataKind::text && facts_.shape.towers == 1 && facts_.usual > kLongText) {
      task.max_tokens = kLongText;
      say("task.max_tokens",
          fmt::format("longer texts are cut, to save time; the longest has {}; more may help",
                      grouped(facts_.longest)));
      length_ = std::min(length_, kLongText);
      mean_ = std::min(mean_, static_cast<double>(kLongText));
    }
    if (facts_.kind == DataKind::text && task.name != "text" && task.name != "retrieval" &&
        facts_.tokens < 300'000) {
      task.min_frequency = 3;
      say("task.min_frequency",
          "characters that are rarer are one unknown token; 15 for more text");
    }
    const FrontendOptions& frontend = out_.config.model.frontend;
    if (frontend.used()) {
      length_ = frontend_tokens(frontend, std::max<int64_t>(1, length_));
      return;
    }
    if (facts_.kind == DataKind::sound && task.keep_every == 1 && length_ > kLongSound) {
      int64_t keep = (length_ + kLongSound - 1) / kLongSound;
      if (facts_.rate > 0) keep = std::min(keep, std::max<int64_t>(1, facts_.rate / kLeastRate));
      keep = std::min<int64_t>(keep, 8);
      if (keep > 1) {
        task.keep_every = keep;
        say("task.keep_every",
            fmt::format("of {} samples every {}; 1 uses all, in {} times the time",
                        grouped(facts_.median), keep == 2 ? "second" : fmt::format("{}th", keep),
                        keep));
        length_ = (length_ + keep - 1) / keep;
        mean_ /= static_cast<double>(keep);
      }
    }
  }

  void choose_size() {
    ModelOptions& m = out_.config.model;
    const bool few = facts_.train < 300, many = facts_.train >= 3000;
    m.layer = "rotrnn";
    m.depth = few ? 3 : 4;
    m.width = few ? 32 : many && length_ <= 4096 ? 64 : 48;
    if (facts_.shape.input == InputKind::channels) {
      // No narrower than what comes in, within reason.
      const int64_t inputs = frontend_channels(m.frontend, facts_.shape.inputs);
      while (m.width < std::min<int64_t>(inputs, 128)) m.width += 16;
    }
    m.state = facts_.kind == DataKind::lists ? 2 * m.width : m.width;
    m.rotrnn.heads = m.state / 4;
    m.norm = Norm::batch;
    m.dropout = facts_.kind == DataKind::lists || facts_.train >= 50000 ? 0.0 : 0.1;
    m.pooling = facts_.shape.per_token ? Pooling::none : Pooling::mean;
    say("model.layer", "or lru, s5, s4d, s4, liquid_s4: docs/layers.md");
    say("model.width", fmt::format("channels between the blocks, for {} examples; more learn more, "
                                   "and take longer",
                                   grouped(facts_.train)));
    say("model.state", "numbers that a block remembers");
    say("model.heads", "rotations of a block, four numbers each");
    say("model.depth", "blocks, one after the other");
    if (facts_.shape.per_token) say("model.pooling", "an output for every step");
    say("model.dropout", m.dropout > 0 ? "against overfitting; more for fewer examples"
                                       : "not needed with so many examples");
  }

  void choose_start() {
    RotRNNInit& init = out_.config.model.rotrnn.init;
    init.gamma_min = 0.5;
    init.gamma_max = 0.999;
    init.theta_max = std::numbers::pi / 10;
    std::string memory = "memories of 2 to 1,000 steps";
    switch (out_.config.model.frontend.used() ? DataKind::series : facts_.kind) {
      case DataKind::text:
        init.gamma_max = 0.99;
        memory = "memories of 2 to 100 characters: words and phrases, which pooling sums up";
        break;
      case DataKind::lists:
        init.theta_max = std::numbers::pi / 100;
        break;
      case DataKind::sound:
        init.gamma_min = 0.9;
        init.gamma_max = 0.9999;
        init.theta_max = std::numbers::pi;  // every frequency that the samples can hold
        memory = "memories of 10 to 10,000 samples";
        break;
      case DataKind::pictures:
        init.gamma_max = length_ > 2000 ? 0.9999 : 0.999;
        memory = "memories of 2 pixels to many rows";
        break;
      case DataKind::series:
        // Up to the length of a series.
        init.gamma_max = length_ < 50 ? 0.98 : length_ < 3000 ? 0.999 : 0.9999;
        init.theta_max = std::numbers::pi / 2;
        memory = fmt::format("memories of 2 to {:.0f} steps", 1 / (1 - init.gamma_max));
        break;
    }
    say("model.init.gamma_min", "the share γ of a state that remains after a step, at the start:");
    say("model.init.gamma_max", memory);
    say("model.init.theta_max", fmt::format("fastest rotation at the start: a turn in {:.0f} steps",
                                            2 * std::numbers::pi / init.theta_max));
  }

  void choose_training() {
    TrainingOptions& t = out_.config.training;
    // Enough steps per epoch for few examples, enough examples per step for many.
    const int64_t most = facts_.train < 200 ? 8 : facts_.train < 3000 ? 16 : 32;
    const double per_step = std::clamp(
        std::min<double>(static_cast<double>(most), static_cast<double>(facts_.train) / 8), 2.0,
        std::max(2.0, static_cast<double>(kMostTokens) / tokens_of(mean_)));
    t.batch_tokens = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(per_step * mean_)));
    say("training.steps", "");  // its place; why comes below
    say("training.batch_tokens", fmt::format("sequences of a step up to this sum of their lengths: "
                                             "about {:.0f} of them",
                                             per_step));
    t.global_lr = out_.config.model.width < 64 ? 6e-3 : 4e-3;
    t.recurrent_lr = 2e-3;
    t.weight_decay = 0.05;
    t.warmup = 0.1;
    t.clip = 1;
    say("training.global_lr", "largest learning rate; halve it if the loss jumps about");
    say("training.recurrent_lr", "the same for parameters of the recurrence");
    say("training.weight_decay", "pulls matrices towards 0");
    say("training.warmup", "share of the steps in which the rates rise");
    say("training.clip", "largest norm of the gradient, so that one odd example does no harm");
    const double epochs =
        std::clamp(60 * std::sqrt(1000 / static_cast<double>(facts_.train)), 8.0, 100.0);
    out_.length = mean_;
    const double epoch = epoch_of(out_, facts_);
    t.steps = std::clamp<int64_t>(rounded(std::round(epochs) * epoch), 300, 50000);
    say("training.steps", over_text(static_cast<double>(t.steps) / epoch));
    t.evaluate_every = rounded(static_cast<double>(t.steps) / kEvaluations);
    t.checkpoint_every = t.evaluate_every;
    say("training.evaluate_every", "steps between evaluations on the validation examples");
    say("training.checkpoint_every", "steps between checkpoints, to go on from after a stop");
  }

  void advise() {
    const ModelOptions& m = out_.config.model;
    if (facts_.shape.input == InputKind::channels && !facts_.shape.per_token &&
        !m.frontend.used() && length_ > kLongSeries) {
      out_.advice.push_back(
          "frontend.kind = \"patch\" with frontend.size = 8 makes one token of eight steps: "
          "sequences are as many times shorter, and steps faster");
    }
    if (facts_.counts.size() < 2) return;
    const auto [least, most] = std::minmax_element(facts_.counts.begin(), facts_.counts.end());
    if (*least * 4 < *most) {
      out_.advice.push_back(fmt::format(
          "training.class_weights = \"balanced\" makes rare classes ({} examples) count "
          "as much as frequent ones ({}); overall accuracy may then fall",
          *least, *most));
    }
  }

  DataFacts facts_;
  Suggestion out_;
  int64_t length_ = 0;  // of a usual sequence as the network sees it
  double mean_ = 0;     // the same, of all
};

void set_reason(Suggestion& s, const std::string& key, const std::string& why) {
  for (Reason& reason : s.reasons) {
    if (reason.key == key) reason.why = why;
  }
}

std::string section_of(const std::string& key) {
  return key.substr(0, key.rfind('.'));
}

// Names of files and columns may hold what a comment of TOML may not.
std::string comment_text(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == kNotUtf8) ++at;
    if (c == kNotUtf8 || c < 0x20 || c == 0x7f) {
      out += '?';
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

const char* unit_of(DataKind kind) {
  switch (kind) {
    case DataKind::text:
      return "characters";
    case DataKind::lists:
      return "tokens";
    case DataKind::sound:
      return "samples";
    case DataKind::pictures:
      return "pixels";
    case DataKind::series:
      break;
  }
  return "steps";
}

std::string classes_text(const DataFacts& f) {
  constexpr size_t kMost = 8;
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min(kMost, f.classes.size()); ++i) {
    some.push_back(f.counts.empty() ? f.classes[i]
                                    : fmt::format("{} ({})", f.classes[i], grouped(f.counts[i])));
  }
  std::string out = fmt::format("{} classes: {}{}", f.classes.size(), fmt::join(some, ", "),
                                f.classes.size() > kMost ? ", …" : "");
  if (!f.counts.empty()) {
    const auto most = *std::max_element(f.counts.begin(), f.counts.end());
    out += fmt::format("; majority class: {:.1f} %",
                       100 * static_cast<double>(most) / static_cast<double>(f.train));
  }
  return out;
}

}  // namespace

DataFacts facts_of(const TaskOptions& task, const TaskData& data) {
  DataFacts f;
  f.kind = kind_of(task, data);
  f.shape = data.facts.shape;
  f.train = data.train.size();
  f.validation = data.validation.size();
  f.test = data.test.size();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < f.train; ++i) lengths.push_back(data.train.length(i));
  std::sort(lengths.begin(), lengths.end());
  if (!lengths.empty()) {
    f.shortest = lengths.front();
    f.median = share_of(lengths, 0.5);
    f.usual = share_of(lengths, 0.95);
    f.longest = lengths.back();
  }
  f.tokens = data.train.total_length();
  f.rate = data.train.size() > 0 ? data.train.records().form.rate : 0;
  f.classes = data.facts.classes;
  if (f.shape.target == TargetKind::classes && !f.shape.per_token) {
    f.counts.assign(f.classes.size(), 0);
    for (int64_t i = 0; i < f.train; ++i) ++f.counts.at(static_cast<size_t>(data.train.label(i)));
  }
  return f;
}

bool cut_into_windows(Guess& guess, const DataFacts& facts) {
  TaskOptions& task = guess.task;
  if (task.target != TaskTarget::forecast || task.window > 0 || facts.train >= 32) return false;
  if (facts.tokens < kLeastSteps) return false;
  task.window = std::clamp<int64_t>(facts.tokens / 64, 16, 512);
  guess.reasons.push_back({"task.window", "steps of an example, cut from a long series"});
  return true;
}

std::vector<std::string> describe(const DataFacts& f) {
  std::vector<std::string> out;
  out.push_back(fmt::format("{} to train on, {} for validation, {} for the test",
                            counted(f.train, "example"), grouped(f.validation), grouped(f.test)));
  out.push_back(f.shape.target == TargetKind::classes
                    ? classes_text(f)
                    : fmt::format("{} to predict{}", counted(f.shape.outputs, "value"),
                                  f.shape.per_token ? " at every step" : ""));
  std::string lengths =
      f.shortest == f.longest
          ? fmt::format("sequences of {} {}", grouped(f.longest), unit_of(f.kind))
          : fmt::format("sequences of {} to {} {}, half of them up to {}", grouped(f.shortest),
                        grouped(f.longest), unit_of(f.kind), grouped(f.median));
  if (f.shape.input == InputKind::channels && f.shape.inputs > 1) {
    lengths += fmt::format(", {} channels", f.shape.inputs);
  }
  if (f.rate > 0) lengths += fmt::format(", {} per second", grouped(f.rate));
  out.push_back(lengths);
  return out;
}

Suggestion suggest(const Guess& guess, const DataFacts& facts) {
  return Chooser(guess, facts).choose();
}

void fit_time(Suggestion& s, const DataFacts& facts, const RunCost& cost, double minutes,
              const std::vector<std::string>& fixed) {
  TrainingOptions& t = s.config.training;
  const auto is_fixed = [&](const char* key) {
    return std::find(fixed.begin(), fixed.end(), key) != fixed.end();
  };
  double test = cost.test;
  if (minutes > 0 && !is_fixed("task.test") && test > 0.2 * 60 * minutes) {
    const double share = 0.2 * 60 * minutes / test;
    const auto kept = std::max<int64_t>(100, rounded(share * static_cast<double>(facts.test)));
    if (kept < facts.test) {
      s.config.task.counts.test = kept;
      s.reasons.insert(std::find_if(s.reasons.begin(), s.reasons.end(),
                                    [](const Reason& r) { return section_of(r.key) != "task"; }),
                       {"task.test", fmt::format("of {} examples, to save time; 0: all of them",
                                                 grouped(facts.test))});
      test *= static_cast<double>(kept) / static_cast<double>(facts.test);
    }
  }
  // Steps and their share of evaluations: no more than a tenth of the time goes into these.
  const auto evaluations = [&](double steps) {
    const double affordable =
        kEvaluationShare * steps * cost.step / std::max(cost.validation, 1e-9);
    return std::clamp(affordable, 2.0, static_cast<double>(kEvaluations));
  };
  const double limit = 60 * (minutes > 0 ? minutes : kDefaultMinutes) - cost.setup - test;
  const double wanted = static_cast<double>(t.steps);
  double steps = minutes > 0 ? limit / cost.step : std::min(wanted, limit / cost.step);
  const bool cut = !is_fixed("training.steps") && (minutes > 0 || steps < wanted);
  if (cut) steps = std::max(20.0, (limit - evaluations(steps) * cost.validation) / cost.step);
  // A long budget is no reason to repeat the same examples for ever.
  const double epoch = epoch_of(s, facts), most = 300 * epoch;
  const bool enough = steps > most;
  steps = std::min(steps, std::max(most, 1000.0));
  t.steps = cut ? rounded(steps) : t.steps;
  const std::string over = over_text(static_cast<double>(t.steps) / epoch);
  set_reason(s, "training.steps",
             is_fixed("training.steps") ? "as given: " + over
             : !cut                     ? over
             : enough                   ? over + ", which is enough"
             : minutes > 0
                 ? fmt::format("what {:g} minutes allow: {}", minutes, over)
                 : fmt::format("what half an hour allows: {}; more steps learn more", over));
  const double every = static_cast<double>(t.steps) / evaluations(static_cast<double>(t.steps));
  if (!is_fixed("training.evaluate_every")) t.evaluate_every = std::min(t.steps, rounded(every));
  // At most two minutes of work are lost when the machine stops.
  if (!is_fixed("training.checkpoint_every")) {
    t.checkpoint_every =
        std::clamp<int64_t>(rounded(120 / cost.step), 1, std::max<int64_t>(1, t.evaluate_every));
  }
  if (!is_fixed("training.log_every")) t.log_every = std::clamp<int64_t>(t.steps / 100, 1, 10);
  s.seconds = cost.setup + test + static_cast<double>(t.steps) * cost.step +
              std::ceil(static_cast<double>(t.steps) / static_cast<double>(t.evaluate_every)) *
                  cost.validation;
  if (t.log_every != TrainingOptions{}.log_every &&
      std::none_of(s.reasons.begin(), s.reasons.end(),
                   [](const Reason& r) { return r.key == "training.log_every"; })) {
    s.reasons.push_back({"training.log_every", "steps between points of the loss curve"});
  }
}

std::string to_commented_toml(const Suggestion& s, const std::vector<std::string>& header) {
  std::string out, section;
  for (const std::string& line : header) {
    out += line.empty() ? "#\n" : fmt::format("# {}\n", comment_text(line));
  }
  std::vector<std::pair<std::string, std::string>> lines;  // of a section: setting, comment
  const auto flush = [&] {
    size_t widest = 0;
    for (const auto& [setting, why] : lines) {
      if (setting.size() <= 44) widest = std::max(widest, setting.size());
    }
    for (const auto& [setting, why] : lines) {
      if (setting.size() > 44) {
        out += fmt::format("# {}\n{}\n", why, setting);
      } else {
        out += fmt::format("{:<{}}  # {}\n", setting, widest, why);
      }
    }
    lines.clear();
  };
  for (const Reason& reason : s.reasons) {
    if (section_of(reason.key) != section) {
      flush();
      section = section_of(reason.key);
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    lines.emplace_back(fmt::format("{} = {}", reason.key.substr(section.size() + 1),
                                   value_of(s.config, reason.key)),
                       comment_text(reason.why));
  }
  flush();
  if (!s.advice.empty()) out += "\n# Consider:\n";
  for (const std::string& text : s.advice) out += fmt::format("#   {}\n", comment_text(text));
  return out;
}

}  // namespace rotrnn
