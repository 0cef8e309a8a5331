#include "rotrnn/data/mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

#include "rotrnn/data/shuffle.h"
#include "rotrnn/io/idx.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kClasses = 10;
constexpr double kMean = 0.1307, kDeviation = 0.3081;  // of the training pixels of MNIST

// Streams of RandomSite::split.
enum Choice : uint64_t { kValidation, kTestPart };

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw std::runtime_error(where + ": " + what);
}

std::array<float, 256> standardised() {
  std::array<float, 256> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<double>(i) / 255 - kMean) / kDeviation);
  }
  return values;
}

MnistImages read_images(const fs::path& file) {
  IdxArray array = read_idx(file, 3);
  if (array.shape[0] == 0) fail(file.string(), "there are no images in it");
  if (array.shape[1] != kMnistSide || array.shape[2] != kMnistSide) {
    fail(file.string(), fmt::format("images of {} × {} pixels; task \"mnist\" reads {} × {}",
                                    array.shape[1], array.shape[2], kMnistSide, kMnistSide));
  }
  return {std::move(array.data), {}, array.shape[0]};
}

// Chosen images as sequences of one channel, their pixels in the order of the options.
Examples to_examples(const MnistImages& images, std::span<const int64_t> chosen,
                     const TaskOptions& options) {
  static const auto values = standardised();
  std::vector<int64_t> order(kMnistPixels);
  std::iota(order.begin(), order.end(), 0);
  if (options.permuted) {
    order = shuffled(kMnistPixels,
                     Random(static_cast<uint64_t>(options.seed), RandomSite::permutation));
  }
  Examples out;
  out.values.reserve(chosen.size() * kMnistPixels);
  for (const int64_t i : chosen) {
    const uint8_t* image = images.pixels.data() + i * kMnistPixels;
    for (const int64_t pixel : order) out.values.push_back(values[image[pixel]]);
    out.offsets.push_back(out.offsets.back() + kMnistPixels);
    out.labels.push_back(images.labels.empty() ? 0 : images.labels[i]);
  }
  return out;
}

// In the order of the file, so that using all of it leaves it as it is.
std::vector<int64_t> sorted(std::span<const int64_t> numbers) {
  std::vector<int64_t> out(numbers.begin(), numbers.end());
  std::sort(out.begin(), out.end());
  return out;
}

int64_t at_most(int64_t limit, int64_t there) {
  return limit > 0 ? std::min(limit, there) : there;
}

}  // namespace

TaskFacts mnist_facts(const TaskOptions&) {
  TaskFacts facts;
  facts.shape = {InputKind::channels, 1, TargetKind::classes, kClasses};
  facts.typical_length = kMnistPixels;
  for (int64_t i = 0; i < kClasses; ++i) facts.classes.push_back(std::to_string(i));
  return facts;
}

fs::path find_idx(const fs::path& folder, const std::string& name) {
  const fs::path plain = folder / name, packed = folder / (name + ".gz");
  if (fs::exists(plain)) return plain;
  if (fs::exists(packed)) return packed;
  fail(folder.string(),
       fmt::format("there is {}; task.path must be a folder with the MNIST files "
                   "{{train,t10k}}-{{images-idx3,labels-idx1}}-ubyte, with .gz or without",
                   fs::is_directory(folder) ? fmt::format("no {}[.gz] in it", name)
                                            : std::string("no such folder")));
}

MnistImages read_mnist(const fs::path& folder, const MnistFiles& files) {
  const fs::path images_file = find_idx(folder, files.images);
  const fs::path labels_file = find_idx(folder, files.labels);
  MnistImages out = read_images(images_file);
  IdxArray labels = read_idx(labels_file, 1);
  if (labels.shape[0] != out.count) {
    fail(labels_file.string(), fmt::format("{} labels for the {} images of {}; the two files do "
                                           "not belong together",
                                           labels.shape[0], out.count, images_file.string()));
  }
  for (int64_t i = 0; i < out.count; ++i) {
    if (labels.data[i] >= kClasses) {
      fail(labels_file.string(),
           fmt::format("label {} of image {}; labels are 0 to 9", labels.data[i], i));
    }
  }
  out.labels = std::move(labels.data);
  return out;
}

TaskData load_mnist(const TaskOptions& options, int) {
  if (options.path.empty()) {
    throw std::invalid_argument(
        "task.path: task \"mnist\" reads files; name the folder with "
        "train-images-idx3-ubyte[.gz] and the other three, such as --set task.path=data/mnist");
  }
  const MnistImages train = read_mnist(options.path, kMnistTrain);
  const MnistImages test = read_mnist(options.path, kMnistTest);
  const int64_t held_out = options.counts.validation > 0 ? options.counts.validation
                                                         : std::max<int64_t>(1, train.count / 10);
  if (held_out >= train.count) {
    throw std::invalid_argument(fmt::format(
        "task.validation = {} leaves nothing of the {} training images", held_out, train.count));
  }
  const auto seed = static_cast<uint64_t>(options.seed);
  const auto order = shuffled(train.count, Random(seed, RandomSite::split, {kValidation}));
  const std::span all(order);
  const std::span rest = all.subspan(static_cast<size_t>(held_out));
  const int64_t kept = at_most(options.counts.train, std::ssize(rest));
  const auto test_order = shuffled(test.count, Random(seed, RandomSite::split, {kTestPart}));
  const int64_t tested = at_most(options.counts.test, test.count);
  return {
      mnist_facts(options),
      to_examples(train, sorted(rest.first(static_cast<size_t>(kept))), options),
      to_examples(train, sorted(all.first(static_cast<size_t>(held_out))), options),
      to_examples(test, sorted(std::span(test_order).first(static_cast<size_t>(tested))), options)};
}

Examples read_mnist_images(const TaskOptions& options, const fs::path& file) {
  const MnistImages images = read_images(file);
  std::vector<int64_t> all(static_cast<size_t>(images.count));
  std::iota(all.begin(), all.end(), 0);
  return to_examples(images, all, options);
}

}  // namespace rotrnn
