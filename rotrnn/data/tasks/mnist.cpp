#include "rotrnn/data/tasks/mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/data/shuffle.h"
#include "rotrnn/io/formats/idx.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kClasses = 10;
constexpr double kPixelMean = 0.1307, kPixelDeviation = 0.3081;  // of the training pixels of MNIST

MnistImages read_images(const fs::path& file) {
  IdxArray array = read_idx(file, 3);
  if (array.shape[0] == 0) fail(file.string(), "there are no images in it");
  if (array.shape[1] != kMnistSide || array.shape[2] != kMnistSide) {
    fail(file.string(), fmt::format("images of {} × {} pixels; task \"mnist\" reads {} × {}",
                                    array.shape[1], array.shape[2], kMnistSide, kMnistSide));
  }
  return {std::move(array.data), {}, array.shape[0]};
}

void add(const MnistImages& images, const char* name, Split split, RecordWriter& out) {
  for (int64_t i = 0; i < images.count; ++i) {
    Record r;
    r.name = fmt::format("{}:{}", name, i);
    r.split = split;
    if (!images.labels.empty()) r.label = std::to_string(images.labels[i]);
    out.add_values(std::move(r),
                   std::span<const uint8_t>(images.pixels.data() + i * kMnistPixels, kMnistPixels));
  }
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

MnistImages read_mnist_split(const fs::path& folder, const MnistFiles& files) {
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

void read_mnist(const ReadRequest& request, RecordWriter& out) {
  out.form({Element::u8, 1, 1.0 / 255, 1}, request.path.string());
  std::vector<std::string> digits;
  for (int64_t i = 0; i < kClasses; ++i) digits.push_back(std::to_string(i));
  out.classes(std::move(digits));
  if (!request.labelled) {
    add(read_images(request.path), request.path.filename().c_str(), Split::any, out);
    return;
  }
  add(read_mnist_split(request.path, kMnistTrain), "train", Split::train, out);
  add(read_mnist_split(request.path, kMnistTest), "test", Split::test, out);
}

Preprocessing prepare_mnist(const TaskOptions& options, const Records& records,
                            std::span<const int64_t>) {
  Preprocessing p = fixed_scale(records.form, kPixelMean, kPixelDeviation, 0);
  if (options.permuted) {
    const Random random(static_cast<uint64_t>(options.seed), RandomSite::permutation);
    for (const int64_t pixel : shuffled(kMnistPixels, random)) {
      p.order.push_back(static_cast<int32_t>(pixel));
    }
  }
  return p;
}

SampleInput mnist_sample(const TaskOptions& options) {
  const auto plain = std::filesystem::path(options.path) / kMnistTest.images;
  return {fs::exists(plain) ? plain.string() : plain.string() + ".gz", true};
}

}  // namespace rotrnn
