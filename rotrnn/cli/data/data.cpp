#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/base/threads.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/data/data_cache.h"
#include "rotrnn/cli/data/data_download.h"
#include "rotrnn/cli/data/inspect.h"
#include "rotrnn/cli/data/make_pathfinder.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/tasks/listops/listops_tsv.h"

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
    print_json_line(nlohmann::ordered_json{{"out", o.out},
                                           {"train", splits.train.size()},
                                           {"validation", splits.validation.size()},
                                           {"test", splits.test.size()},
                                           {"draws", splits.draws}});
  } else {
    fmt::print("{}: {} train, {} validation, {} test, kept of {} draws\n", o.out,
               grouped(splits.train.size()), grouped(splits.validation.size()),
               grouped(splits.test.size()), grouped(splits.draws));
  }
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
  add_data_cache(*data, action);
  add_make(*data, action);
  add_data_inspect(*data, action);
}

}  // namespace rotrnn::cli
