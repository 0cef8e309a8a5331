#include "rotrnn/cli/inspect_mnist.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/text.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct Summary {
  const char* name;
  MnistImages images;
  double mean = 0, deviation = 0;  // of the pixels as shares of white
  std::array<int64_t, 10> labels{};
};

Summary summarise(const fs::path& folder, const char* name, const MnistFiles& files) {
  Summary s{name, read_mnist_split(folder, files), 0, 0, {}};
  double sum = 0, squares = 0;
  for (const uint8_t pixel : s.images.pixels) {
    sum += pixel;
    squares += static_cast<double>(pixel) * pixel;
  }
  const auto count = static_cast<double>(s.images.pixels.size());
  s.mean = sum / count / 255;
  s.deviation = std::sqrt(squares / count / (255.0 * 255) - s.mean * s.mean);
  for (const uint8_t label : s.images.labels) ++s.labels[label];
  return s;
}

// Two rows of pixels a line of text, since characters are twice as high as wide.
void print_image(const MnistImages& images, int64_t i) {
  constexpr std::string_view kGreys = " .:-=+*#%@";
  fmt::print("  label {}\n", images.labels[i]);
  const uint8_t* image = images.pixels.data() + i * kMnistPixels;
  for (int64_t row = 0; row < kMnistSide; row += 2) {
    std::string line;
    for (int64_t column = 0; column < kMnistSide; ++column) {
      const uint8_t* pixel = image + row * kMnistSide + column;
      line += kGreys[(pixel[0] + pixel[kMnistSide]) * (kGreys.size() - 1) / 510];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}{}\n", line.empty() ? "" : "  ", line);
  }
}

void print_json(const std::array<Summary, 2>& summaries) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Summary& s : summaries) {
    out.push_back({{"file", s.name},
                   {"examples", s.images.count},
                   {"length", kMnistPixels},
                   {"mean", s.mean},
                   {"deviation", s.deviation},
                   {"labels", s.labels}});
  }
  fmt::print("{}\n", out.dump());
}

void print_text(const std::array<Summary, 2>& summaries, int64_t samples) {
  std::vector<std::vector<std::string>> rows{{"file", "images", "length", "mean", "deviation"}};
  std::vector<std::vector<std::string>> labels{{"label"}};
  for (const Summary& s : summaries) {
    rows.push_back({s.name, grouped(s.images.count), grouped(kMnistPixels),
                    fmt::format("{:.4f}", s.mean), fmt::format("{:.4f}", s.deviation)});
    labels[0].emplace_back(s.name);
  }
  fmt::print("MNIST, pixels from 0 to 1\n{}\n", table(rows, {1, 2, 3, 4}));
  for (size_t label = 0; label < 10; ++label) {
    labels.push_back({std::to_string(label)});
    for (const Summary& s : summaries) {
      labels.back().push_back(
          percent(static_cast<double>(s.labels[label]) / static_cast<double>(s.images.count)));
    }
  }
  fmt::print("{}", table(labels, {1, 2}));
  for (const Summary& s : summaries) {
    if (samples > 0) fmt::print("\n{}\n", s.name);
    for (int64_t i = 0; i < std::min(samples, s.images.count); ++i) print_image(s.images, i);
  }
}

}  // namespace

bool holds_mnist(const fs::path& path) {
  for (const char* end : {"", ".gz"}) {
    if (fs::exists(path / (std::string(kMnistTrain.images) + end))) return true;
  }
  return false;
}

int inspect_mnist(const fs::path& folder, int64_t samples, bool json) {
  const std::array summaries{summarise(folder, "train", kMnistTrain),
                             summarise(folder, "t10k", kMnistTest)};
  json ? print_json(summaries) : print_text(summaries, samples);
  return 0;
}

}  // namespace rotrnn::cli
