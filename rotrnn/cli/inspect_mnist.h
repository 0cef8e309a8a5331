#pragma once

#include <filesystem>

#include "rotrnn/data/mnist.h"

namespace rotrnn::cli {

/// Whether `path` is a folder with MNIST's files.
bool holds_mnist(const std::filesystem::path& path);

/// `rotrnn data inspect` of such a folder: counts, pixels, labels, and a few images as text.
int inspect_mnist(const std::filesystem::path& folder, int64_t samples, bool json);

}  // namespace rotrnn::cli
