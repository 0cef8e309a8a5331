#include "rotrnn/cli/data/make_pathfinder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "rotrnn/base/message.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/tasks/pathfinder/pathfinder_files.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn::cli {
namespace {

struct PathfinderSettings {
  std::string out, sheet;
  int64_t size = 32, contour_length = 14;
  std::optional<int64_t> distractors, distractor_length;
  PathfinderFiles files;
  bool json = false;
};

PathfinderOptions generator_options(const PathfinderSettings& o) {
  PathfinderOptions g = pathfinder_preset(o.size, o.contour_length);
  if (o.distractors) g.distractors = *o.distractors;
  if (o.distractor_length) g.distractor_length = *o.distractor_length;
  validate(g);
  return g;
}

// Pictures done, on standard error: a line that moves on a terminal, else one now and then.
class Count {
 public:
  Count(int64_t total, bool quiet) : total_(total), quiet_(quiet) {}

  void show(int64_t done) {
    const double now = seconds();
    const double pause = terminal_ ? 0.1 : 10;
    if (quiet_ || (now - shown_ < pause && done < total_) || (!terminal_ && now < pause)) return;
    shown_ = now;
    const double rate = static_cast<double>(done) / std::max(now, 1e-9);
    print_message("{}{} of {} pictures  {} per second  {} left{}", terminal_ ? "\r\033[K" : "",
                  grouped(done), grouped(total_), grouped(static_cast<int64_t>(rate)),
                  duration(static_cast<double>(total_ - done) / std::max(rate, 1e-9)),
                  terminal_ ? "" : "\n");
    std::fflush(stderr);
  }

  void finish() const {
    if (terminal_ && shown_ >= 0) print_message("\r\033[K");
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  int64_t total_;
  bool quiet_, terminal_ = isatty(STDERR_FILENO) == 1;
  double shown_ = -1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Rows from the top: 32 pixels label 0 and 1, then 128 pixels, all as wide.
Image both_sizes(uint64_t seed) {
  Image top = pathfinder_sheet(pathfinder_preset(32), seed, 4, 4);
  const Image bottom = pathfinder_sheet(pathfinder_preset(128), seed, 4, 1);
  // Cells are 132 pixels above and 129 below.
  for (int64_t y = 0; y < bottom.height; ++y) {
    const auto row = bottom.pixels.begin() + y * bottom.width;
    top.pixels.insert(top.pixels.end(), row, row + bottom.width);
    top.pixels.insert(top.pixels.end(), static_cast<std::size_t>(top.width - bottom.width), 96);
  }
  top.height += bottom.height;
  return top;
}

int make_sheet(const PathfinderSettings& o) {
  check_free(o.sheet, o.files.overwrite, "--overwrite");
  const std::string png = encode_png(both_sizes(o.files.seed));
  write_file_atomically(o.sheet, png);
  fmt::print("{}: four pictures of each class, {}\n", o.sheet,
             bytes(static_cast<double>(png.size())));
  return 0;
}

int make_set(PathfinderSettings o) {
  const PathfinderOptions generator = generator_options(o);
  if (o.files.threads == 0) o.files.threads = kernels::available_threads();
  Count count(o.files.count, o.json);
  catch_interrupts();
  o.files.progress = [&](int64_t done) {
    if (interrupted()) throw std::runtime_error("interrupted; nothing was written");
    count.show(done);
  };
  try {
    write_pathfinder(o.out, generator, o.files);
  } catch (...) {
    count.finish();
    throw;
  }
  count.finish();
  const std::string folder = pathfinder_folder(o.out, generator).string();
  const double rate = static_cast<double>(o.files.count) / std::max(count.seconds(), 1e-9);
  if (o.json) {
    print_json_line(nlohmann::ordered_json{{"out", folder},
                                           {"pictures", o.files.count},
                                           {"size", generator.size},
                                           {"contour_length", generator.contour_length},
                                           {"distractors", generator.distractors},
                                           {"distractor_length", generator.distractor_length},
                                           {"seed", o.files.seed},
                                           {"pictures_per_second", rate}});
  } else {
    fmt::print("{}: {} pictures of {} × {} pixels, half of them with label 1, {} per second\n",
               folder, grouped(o.files.count), generator.size, generator.size,
               grouped(static_cast<int64_t>(rate)));
  }
  return 0;
}

void add_command(CLI::App& make, Action& action, const char* name, const char* about,
                 int64_t size) {
  auto o = std::make_shared<PathfinderSettings>();
  o->size = size;
  o->files.threads = 0;
  auto* command = make.add_subcommand(name, about);
  auto* out = command->add_option("--out", o->out,
                                  "folder to write pathfinder{32,128}/curv_contour_length_14 to");
  if (size == 32) {
    command->add_option("--size", o->size, "pixels a side, 32 or 128")
        ->capture_default_str()
        ->check(CLI::IsMember({32, 128}));
  }
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 32);
  command->add_option("--count", o->files.count, "pictures")
      ->capture_default_str()
      ->check(positive);
  command->add_option("--seed", o->files.seed, "seed")->capture_default_str();
  command->add_option("--contour-length", o->contour_length, "paddles of the two long snakes")
      ->capture_default_str();
  command->add_option("--distractors", o->distractors,
                      "other snakes; else as many as make 20 paddles (128 pixels: 35)");
  command->add_option("--distractor-length", o->distractor_length,
                      "their paddles; else a third of the contour length");
  command->add_option("--per-folder", o->files.per_folder, "pictures in one folder imgs/K")
      ->capture_default_str()
      ->check(positive);
  command->add_option("--threads", o->files.threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--overwrite", o->files.overwrite, "replace a set or a sheet that is there");
  command->add_flag("--json", o->json, "one line of JSON");
  auto* sheet = command->add_option("--sheet", o->sheet,
                                    "instead, write a PNG file with examples of both sizes");
  sheet->excludes(out);
  command->callback([o, out, sheet, &action] {
    if (out->empty() && sheet->empty()) throw CLI::RequiredError("--out");
    action = [o] { return o->sheet.empty() ? make_set(*o) : make_sheet(*o); };
  });
}

}  // namespace

void add_make_pathfinder(CLI::App& make, Action& action) {
  add_command(make, action, "pathfinder", "Pathfinder in the public layout", 32);
  add_command(make, action, "pathx", "Path-X: Pathfinder with 128 pixels a side", 128);
}

}  // namespace rotrnn::cli
