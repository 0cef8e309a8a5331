#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/data/task.h"

// Sequential MNIST: an image read pixel by pixel, row after row, one channel, ten classes; permuted
// MNIST reads the pixels of all images in one random order. The four IDX files as published, or any
// others in their form (Fashion-MNIST, KMNIST).

namespace rotrnn {

TaskFacts mnist_facts(const TaskOptions& options);

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, with .gz or without, from a folder; to
/// predict, one IDX file of images.
void read_mnist(const ReadRequest& request, RecordWriter& out);

/// Pixels become (x/255 - 0.1307) / 0.3081, in the order that task.permuted asks for.
Preprocessing prepare_mnist(const TaskOptions& options, const Records& records,
                            std::span<const int64_t> train);

SampleInput mnist_sample(const TaskOptions& options);

/// `folder`/`name`, or with .gz when only that is there.
std::filesystem::path find_idx(const std::filesystem::path& folder, const std::string& name);

/// Names of the files of a split, without .gz.
struct MnistFiles {
  const char *images, *labels;
};
inline constexpr MnistFiles kMnistTrain{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
inline constexpr MnistFiles kMnistTest{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

inline constexpr int64_t kMnistSide = 28, kMnistPixels = kMnistSide * kMnistSide;

/// Images row by row, with a label each.
struct MnistImages {
  std::vector<uint8_t> pixels, labels;
  int64_t count = 0;
};

/// Reads the two files of a split and checks that they belong together.
MnistImages read_mnist_split(const std::filesystem::path& folder, const MnistFiles& files);

}  // namespace rotrnn
