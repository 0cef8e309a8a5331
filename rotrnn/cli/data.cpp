#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/data_download.h"
#include "rotrnn/cli/inspect_mnist.h"
#include "rotrnn/cli/make_pathfinder.h"
#include "rotrnn/cli/text.h"
#include "rotrnn/data/listops_tsv.h"
#include "rotrnn/kernels/threads.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct MakeOptions {
  std::string out;
  ListOpsCounts counts;
  ListOpsOptions listops;
  uint64_t seed = 0;
  int threads = 0;
  bool overwrite = false, json = false;
};

constexpr std::array kFiles{"basic_train.tsv", "basic_val.tsv", "basic_test.tsv"};

int make_listops(const MakeOptions& o) {
  validate(o.listops);
  for (const char* name : kFiles) {
    if (fs::exists(fs::path(o.out) / name) && !o.overwrite) {
      throw std::invalid_argument(fmt::format(
          "{}: there is a {} in it already; replace it with --overwrite or choose another --out",
          o.out, name));
    }
  }
  const int threads = o.threads > 0 ? o.threads : kernels::available_threads();
  const ListOpsSplits splits = generate_listops(o.listops, o.seed, o.counts, threads);
  write_listops_folder(o.out, splits);
  if (o.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"out", o.out},
                                              {"train", splits.train.size()},
                                              {"validation", splits.validation.size()},
                                              {"test", splits.test.size()},
                                              {"draws", splits.draws}}
                           .dump());
  } else {
    fmt::print("{}: {} train, {} validation, {} test, kept of {} draws\n", o.out,
               grouped(splits.train.size()), grouped(splits.validation.size()),
               grouped(splits.test.size()), grouped(splits.draws));
  }
  return 0;
}

struct InspectOptions {
  std::string path;
  int64_t samples = 3;
  bool json = false;
};

struct Summary {
  std::string name;
  int64_t examples = 0, shortest = 0, longest = 0;
  double mean = 0;
  std::array<int64_t, 10> labels{};
  std::vector<std::string> samples;
};

Summary summarise(const std::string& name, const ListOpsExamples& examples, int64_t samples) {
  Summary s;
  s.name = name;
  s.examples = examples.size();
  int64_t total = 0;
  for (int64_t i = 0; i < examples.size(); ++i) {
    const int64_t length = std::ssize(examples.expression(i));
    s.shortest = i == 0 ? length : std::min(s.shortest, length);
    s.longest = std::max(s.longest, length);
    total += length;
    ++s.labels[examples.labels[i]];
    if (i < samples) {
      s.samples.push_back(
          fmt::format("{} → {}", listops_text(examples.expression(i)), examples.labels[i]));
    }
  }
  if (s.examples > 0) s.mean = static_cast<double>(total) / static_cast<double>(s.examples);
  return s;
}

void print_json(const std::vector<Summary>& summaries) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Summary& s : summaries) {
    out.push_back({{"file", s.name},
                   {"examples", s.examples},
                   {"shortest", s.shortest},
                   {"mean_length", s.mean},
                   {"longest", s.longest},
                   {"labels", s.labels},
                   {"samples", s.samples}});
  }
  fmt::print("{}\n", out.dump());
}

void print_text(const std::vector<Summary>& summaries) {
  std::vector<std::vector<std::string>> rows{{"file", "examples", "shortest", "mean", "longest"}};
  std::vector<std::vector<std::string>> labels{{"label"}};
  for (const Summary& s : summaries) {
    rows.push_back({s.name, grouped(s.examples), grouped(s.shortest), fmt::format("{:.1f}", s.mean),
                    grouped(s.longest)});
    labels[0].push_back(s.name);
  }
  fmt::print("ListOps, lengths in tokens\n{}\n", table(rows, {1, 2, 3, 4}));
  for (size_t label = 0; label < 10; ++label) {
    std::vector<std::string> row{std::to_string(label)};
    for (const Summary& s : summaries) {
      const double share =
          s.examples ? static_cast<double>(s.labels[label]) / static_cast<double>(s.examples) : 0;
      row.push_back(fmt::format("{:>6} {}", percent(share),
                                std::string(static_cast<size_t>(share * 40 + 0.5), '#')));
    }
    labels.push_back(row);
  }
  fmt::print("{}", table(labels));
  for (const Summary& s : summaries) {
    if (s.samples.empty()) continue;
    fmt::print("\n{}\n", s.name);
    for (const std::string& sample : s.samples) {
      constexpr size_t kWidth = 300;
      fmt::print("  {}\n", sample.size() <= kWidth ? sample
                                                   : sample.substr(0, kWidth / 2) + " … " +
                                                         sample.substr(sample.size() - kWidth / 2));
    }
  }
}

int inspect(const InspectOptions& o) {
  if (holds_mnist(o.path)) return inspect_mnist(o.path, o.samples, o.json);
  std::vector<Summary> summaries;
  auto add = [&](const fs::path& file) {
    summaries.push_back(summarise(file.filename().string(), read_listops_tsv(file), o.samples));
  };
  if (fs::is_directory(o.path)) {
    for (const char* name : kFiles) {
      if (fs::exists(fs::path(o.path) / name)) add(fs::path(o.path) / name);
    }
    if (summaries.empty()) {
      throw std::runtime_error(fmt::format("{}: there is none of {}, {} in it", o.path,
                                           fmt::join(kFiles, ", "), kMnistTrain.images));
    }
  } else {
    add(o.path);
  }
  o.json ? print_json(summaries) : print_text(summaries);
  return 0;
}

void add_make(CLI::App& data, Action& action) {
  auto o = std::make_shared<MakeOptions>();
  auto* make = data.add_subcommand("make", "Make data");
  make->require_subcommand(1);
  auto* listops = make->add_subcommand(
      "listops", "ListOps in the public format; the defaults are the Long Range Arena's setting");
  listops->add_option("--out", o->out, "folder to write basic_{train,val,test}.tsv to")->required();
  const auto count = CLI::Range(int64_t{0}, int64_t{1} << 32);
  listops->add_option("--train", o->counts.train, "examples")->capture_default_str()->check(count);
  listops->add_option("--validation", o->counts.validation, "examples")
      ->capture_default_str()
      ->check(count);
  listops->add_option("--test", o->counts.test, "examples")->capture_default_str()->check(count);
  listops->add_option("--seed", o->seed, "seed")->capture_default_str();
  listops->add_option("--min-length", o->listops.min_length, "lists are longer than this")
      ->capture_default_str();
  listops->add_option("--max-length", o->listops.max_length, "and shorter than this")
      ->capture_default_str();
  listops->add_option("--max-depth", o->listops.max_depth, "depth of the deepest digits")
      ->capture_default_str();
  listops->add_option("--max-args", o->listops.max_args, "most arguments of an operator")
      ->capture_default_str();
  listops
      ->add_option("--operator-probability", o->listops.operator_probability,
                   "probability that a node is an operator")
      ->capture_default_str();
  listops->add_option("--threads", o->threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  listops->add_flag("--overwrite", o->overwrite, "replace files that are there");
  listops->add_flag("--json", o->json, "one line of JSON");
  listops->callback([o, &action] { action = [o] { return make_listops(*o); }; });
  add_make_pathfinder(*make, action);
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  auto* data = app.add_subcommand("data", "Get or make data, or look at them");
  data->require_subcommand(1);
  add_data_list(*data, action);
  add_data_download(*data, action);
  add_make(*data, action);
  auto o = std::make_shared<InspectOptions>();
  auto* inspect_command = data->add_subcommand("inspect", "Sizes, lengths, labels and samples");
  inspect_command
      ->add_option("path", o->path, "a ListOps file or folder, or a folder with the MNIST files")
      ->required();
  inspect_command->add_option("--samples", o->samples, "how many to show of each file")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  inspect_command->add_flag("--json", o->json, "one line of JSON");
  inspect_command->callback([o, &action] { action = [o] { return inspect(*o); }; });
}

}  // namespace rotrnn::cli
