#include "rotrnn/data/tasks/pathfinder/pathfinder_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <stdexcept>

#include "rotrnn/base/threads.h"
#include "rotrnn/data/tasks/pathfinder/pathfinder_metadata.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/folder_lock.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

// Not synced one by one: the whole folder is, before it gets its name.
void write_plainly(const fs::path& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out)
    throw std::runtime_error(
        fmt::format("{}: cannot be written; is the disk full?", file.string()));
}

// A folder that is gone unless keep() was reached.
class Unfinished {
 public:
  explicit Unfinished(fs::path folder) : folder_(std::move(folder)) {
    fs::remove_all(folder_);  // what a killed process left
    fs::create_directories(folder_);
  }
  ~Unfinished() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(folder_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const fs::path& path() const { return folder_; }
  void keep() { kept_ = true; }

 private:
  fs::path folder_;
  bool kept_ = false;
};

void sync_files(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::syncfs(descriptor);  // one call instead of one per file; replace_folder() reports what fails
  ::close(descriptor);
}

// Writes pictures from a shared counter, in small blocks so that threads rarely meet.
class Writing {
 public:
  Writing(const fs::path& folder, const PathfinderOptions& options, const PathfinderFiles& files)
      : folder_(folder), options_(options), files_(files), lines_(files.count) {}

  void run() {
    const int64_t folders = (files_.count + files_.per_folder - 1) / files_.per_folder;
    for (int64_t k = 0; k < folders; ++k) {
      fs::create_directories(folder_ / "imgs" / std::to_string(k));
    }
    fs::create_directories(folder_ / "metadata");
    kernels::parallel_for(files_.threads, [&](int) { work(); });
    if (error_) std::rethrow_exception(error_);
    for (int64_t k = 0; k < folders; ++k) {
      std::string text;
      const int64_t end = std::min(files_.count, (k + 1) * files_.per_folder);
      for (int64_t i = k * files_.per_folder; i < end; ++i) text += lines_[i] + "\n";
      write_plainly(folder_ / "metadata" / fmt::format("{}.npy", k), text);
    }
  }

 private:
  static constexpr int64_t kBlock = 16;

  void work() {
    try {
      for (int64_t first; !stop_ && (first = next_.fetch_add(kBlock)) < files_.count;) {
        const int64_t end = std::min(first + kBlock, files_.count);
        for (int64_t i = first; i < end; ++i) write(i);
        const std::lock_guard lock(mutex_);
        done_ += end - first;
        if (files_.progress) files_.progress(done_);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
  }

  void write(int64_t index) {
    const auto scene = draw_pathfinder_scene(options_, files_.seed, static_cast<uint64_t>(index));
    const std::string folder = fmt::format("imgs/{}", index / files_.per_folder);
    const int64_t number = index % files_.per_folder;
    const std::string file = fmt::format("sample_{}.png", number);
    write_plainly(folder_ / folder / file, encode_png(draw_pathfinder(options_, scene)));
    lines_[index] = pathfinder_metadata_line(options_, scene, folder, file, number);
  }

  const fs::path& folder_;
  const PathfinderOptions& options_;
  const PathfinderFiles& files_;
  std::vector<std::string> lines_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  int64_t done_ = 0;
  std::exception_ptr error_;
};

}  // namespace

fs::path pathfinder_folder(const fs::path& out, const PathfinderOptions& options) {
  return out / fmt::format("pathfinder{}", options.size) /
         fmt::format("curv_contour_length_{}", options.contour_length);
}

void write_pathfinder(const fs::path& out, const PathfinderOptions& options,
                      const PathfinderFiles& files) {
  validate(options);
  if (files.count < 1 || files.per_folder < 1 || files.threads < 1) {
    throw std::invalid_argument(
        "pathfinder: the number of pictures, of pictures in a folder and of threads must be at "
        "least 1");
  }
  const fs::path target = pathfinder_folder(out, options);
  const auto refuse = [&] {
    if (files.overwrite || !fs::exists(target)) return;
    throw std::invalid_argument(
        fmt::format("{}: there is a set already; replace it with --overwrite or choose another "
                    "--out",
                    target.string()));
  };
  refuse();
  fs::create_directories(target.parent_path());
  const FolderLock lock(target.parent_path());
  refuse();  // again, since another process may have held the folder until now
  Unfinished fresh(fs::path(target) += ".unfinished");
  Writing(fresh.path(), options, files).run();
  sync_files(fresh.path());
  replace_folder(fresh.path(), target);
  fresh.keep();
}

Image pathfinder_sheet(const PathfinderOptions& options, uint64_t seed, int64_t per_class,
                       int64_t zoom) {
  validate(options);
  const int64_t cell = options.size * zoom + zoom, width = per_class * cell + zoom,
                height = 2 * cell + zoom;
  Image sheet{width, height, 1, {}};
  sheet.pixels.assign(static_cast<std::size_t>(width * height), 96);
  for (int64_t i = 0; i < 2 * per_class; ++i) {
    const auto scene = draw_pathfinder_scene(options, seed, static_cast<uint64_t>(i));
    const Image picture = draw_pathfinder(options, scene);
    const int64_t left = zoom + i / 2 * cell, top = zoom + scene.label * cell;
    for (int64_t y = 0; y < options.size * zoom; ++y) {
      for (int64_t x = 0; x < options.size * zoom; ++x) {
        sheet.pixels[static_cast<std::size_t>((top + y) * width + left + x)] =
            picture.pixels[static_cast<std::size_t>(y / zoom * options.size + x / zoom)];
      }
    }
  }
  return sheet;
}

}  // namespace rotrnn
