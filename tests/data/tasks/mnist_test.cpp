#include "rotrnn/data/tasks/mnist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"

namespace rotrnn {
namespace {

using test::Folder;
using test::gzipped;
using test::idx_bytes;

// Pixel p of image i; the first pixel is the number of the image.
uint8_t pixel(int64_t i, int64_t p) {
  return static_cast<uint8_t>(p == 0 ? i : (i * 31 + p * 7) % 256);
}

std::string images(uint32_t count, uint32_t side = 28) {
  std::string data;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t p = 0; p < side * side; ++p) data += static_cast<char>(pixel(i, p));
  }
  return idx_bytes({count, side, side}, data);
}

std::string labels(uint32_t count, uint8_t last = 3) {
  std::string data;
  for (uint32_t i = 0; i + 1 < count; ++i) data += static_cast<char>(i * 3 % 10);
  return idx_bytes({count}, data + static_cast<char>(last));
}

void write(const Folder& folder, const std::string& name, const std::string& bytes) {
  write_file_atomically(folder / name, bytes);
}

// 40 training and 9 test images; half of the files packed.
void fill(const Folder& folder) {
  write(folder, "train-images-idx3-ubyte", images(40));
  write(folder, "train-labels-idx1-ubyte.gz", gzipped(labels(40)));
  write(folder, "t10k-images-idx3-ubyte.gz", gzipped(images(9)));
  write(folder, "t10k-labels-idx1-ubyte", labels(9));
}

TaskOptions options_of(const Folder& folder) {
  TaskOptions o;
  o.name = "mnist";
  o.path = folder.path();
  return o;
}

float standardised(uint8_t x) {
  return static_cast<float>((x / 255.0 - 0.1307) / 0.3081);
}

std::vector<float> values_of(const Examples& e, int64_t i) {
  std::vector<float> out(784);
  e.write_values(i, out.data());
  return out;
}

std::vector<std::vector<float>> all_values(const Examples& e) {
  std::vector<std::vector<float>> out;
  for (int64_t i = 0; i < e.size(); ++i) out.push_back(values_of(e, i));
  return out;
}

std::vector<int64_t> labels_of(const Examples& e) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < e.size(); ++i) out.push_back(e.label(i));
  return out;
}

// The number of an image, from its first pixel.
int64_t number_of(const Examples& e, int64_t i) {
  return std::lround((values_of(e, i)[0] * 0.3081 + 0.1307) * 255);
}

std::set<int64_t> numbers_of(const Examples& e) {
  std::set<int64_t> out;
  for (int64_t i = 0; i < e.size(); ++i) out.insert(number_of(e, i));
  return out;
}

TEST(Mnist, PixelsAndLabelsAreThoseOfTheFiles) {
  const Folder folder;
  fill(folder);
  const TaskData data = load_task(options_of(folder), 1);
  EXPECT_EQ(data.facts.shape.input, InputKind::channels);
  EXPECT_EQ(data.facts.shape.inputs, 1);
  EXPECT_EQ(data.facts.shape.outputs, 10);
  EXPECT_EQ(data.facts.classes.size(), 10u);
  EXPECT_EQ(data.train.size(), 36);
  EXPECT_EQ(data.validation.size(), 4) << "a tenth";
  EXPECT_EQ(data.test.size(), 9);
  for (const Examples* split : {&data.train, &data.validation, &data.test}) {
    ASSERT_EQ(split->total_length(), split->size() * 784);
    const int64_t last = split == &data.test ? 8 : 39;
    for (int64_t i = 0; i < split->size(); ++i) {
      ASSERT_EQ(split->length(i), 784);
      const int64_t n = number_of(*split, i);
      EXPECT_EQ(split->label(i), n == last ? 3 : n * 3 % 10);
      const auto values = values_of(*split, i);
      for (int64_t p = 0; p < 784; ++p) {
        // A pixel is multiplied by 1/255 in double here and divided by 255 in the test.
        ASSERT_FLOAT_EQ(values[p], standardised(pixel(n, p)));
      }
    }
  }
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(number_of(data.test, i), i) << "in their order";
}

TEST(Mnist, ValidationIsARandomPartOfTrain) {
  const Folder folder;
  fill(folder);
  TaskOptions o = options_of(folder);
  o.counts.validation = 10;
  const TaskData a = load_task(o, 1), again = load_task(o, 1);
  const auto train = numbers_of(a.train), validation = numbers_of(a.validation);
  EXPECT_EQ(train.size(), 30u);
  EXPECT_EQ(validation.size(), 10u);
  std::set<int64_t> both = train;
  both.insert(validation.begin(), validation.end());
  EXPECT_EQ(both.size(), 40u) << "no image is in both";
  EXPECT_EQ(numbers_of(again.validation), validation);
  o.seed = 1;
  EXPECT_NE(numbers_of(load_task(o, 1).validation), validation);
}

TEST(Mnist, CountsAreUpperLimits) {
  const Folder folder;
  fill(folder);
  TaskOptions o = options_of(folder);
  o.counts = {12, 5, 4};
  const TaskData part = load_task(o, 1);
  EXPECT_EQ(part.train.size(), 12);
  EXPECT_EQ(part.validation.size(), 5);
  EXPECT_EQ(part.test.size(), 4);
  o.counts = {20, 5, 6};
  const TaskData more = load_task(o, 1);
  auto within = [](const Examples& a, const Examples& b) {
    const auto x = numbers_of(a), y = numbers_of(b);
    return std::includes(y.begin(), y.end(), x.begin(), x.end());
  };
  EXPECT_TRUE(within(part.train, more.train)) << "a larger part holds the smaller one";
  EXPECT_TRUE(within(part.test, more.test));
  EXPECT_EQ(numbers_of(part.validation), numbers_of(more.validation));
  o.counts = {1000, 39, 1000};
  const TaskData all = load_task(o, 1);
  EXPECT_EQ(all.train.size(), 1);
  EXPECT_EQ(all.test.size(), 9);
  o.counts.validation = 40;
  EXPECT_THROW(load_task(o, 1), std::invalid_argument);
}

TEST(Mnist, PermutedIsOneOrderForAllImages) {
  const Folder folder;
  fill(folder);
  TaskOptions o = options_of(folder);
  const TaskData plain = load_task(o, 1);
  o.permuted = true;
  const TaskData a = load_task(o, 1), again = load_task(o, 1);
  o.seed = 1;
  const TaskData other = load_task(o, 1);
  EXPECT_EQ(all_values(a.test), all_values(again.test));
  EXPECT_EQ(labels_of(a.test), labels_of(plain.test));
  EXPECT_NE(all_values(a.test), all_values(other.test));
  // Where each pixel went: a column of values over the test images names a pixel, as 31 i + 7 p
  // takes each value mod 256 for at most four p; so compare columns as sets and by their sums.
  auto columns = [](const Examples& e) {
    std::vector<std::vector<float>> out(784);
    for (const auto& values : all_values(e)) {
      for (size_t p = 0; p < 784; ++p) out[p].push_back(values[p]);
    }
    return out;
  };
  auto before = columns(plain.test), after = columns(a.test);
  int64_t moved = 0;
  for (size_t p = 0; p < 784; ++p) moved += before[p] != after[p];
  EXPECT_GT(moved, 700);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(before, after) << "the same columns in another order";
}

TEST(Mnist, ImagesToPredictAreThoseOfTheTestSplit) {
  const Folder folder;
  fill(folder);
  for (const bool permuted : {false, true}) {
    TaskOptions o = options_of(folder);
    o.permuted = permuted;
    EXPECT_TRUE(sample_input(o).file);
    EXPECT_EQ(sample_input(o).text, (folder / "t10k-images-idx3-ubyte.gz").string());
    const TaskData data = load_task(o, 1);
    const InputReader reader(o, data.facts);
    const Examples inputs = reader.file(sample_input(o).text, 1);
    EXPECT_EQ(inputs.size(), 9);
    EXPECT_EQ(all_values(inputs), all_values(data.test));
    EXPECT_FALSE(reader.takes_lines());
    EXPECT_THROW(reader.lines({"7"}), std::invalid_argument);
  }
}

TEST(Mnist, FilesThatDoNotFitAreRefused) {
  const Folder folder;
  const TaskOptions o = options_of(folder);
  auto error = [&] { return test::message_of<std::runtime_error>([&] { load_task(o, 1); }); };
  auto expect = [&](const std::string& part) {
    const std::string text = error();
    EXPECT_NE(text.find(part), std::string::npos) << text << " lacks " << part;
  };
  expect("there is no train-images-idx3-ubyte[.gz] in it; task.path must be");
  fill(folder);
  EXPECT_NO_THROW(load_task(o, 1));
  write(folder, "t10k-labels-idx1-ubyte", labels(8));
  expect("t10k-labels-idx1-ubyte: 8 labels for the 9 images of ");
  write(folder, "t10k-labels-idx1-ubyte", labels(9, 10));
  expect("t10k-labels-idx1-ubyte: label 10 of image 8; labels are 0 to 9");
  write(folder, "t10k-labels-idx1-ubyte", images(9));
  expect("t10k-labels-idx1-ubyte: offset 3: 3 dimensions, expected 1");
  write(folder, "t10k-images-idx3-ubyte", images(9, 27));
  expect("t10k-images-idx3-ubyte: images of 27 × 27 pixels");
  write(folder, "t10k-images-idx3-ubyte", idx_bytes({0, 28, 28}, ""));
  expect("there are no images in it");
  write(folder, "t10k-images-idx3-ubyte", images(9).substr(0, 500));
  expect("t10k-images-idx3-ubyte: offset 4:");
  TaskOptions none = o;
  none.path = folder / "nowhere";
  EXPECT_NE(test::message_of<std::runtime_error>([&] {
              load_task(none, 1);
            }).find("there is no such file or folder"),
            std::string::npos);
  none.path.clear();
  EXPECT_NE(test::message_of<std::invalid_argument>([&] { load_task(none, 1); }).find("task.path"),
            std::string::npos);
}

}  // namespace
}  // namespace rotrnn
