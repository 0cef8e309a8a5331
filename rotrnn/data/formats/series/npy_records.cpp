#include "rotrnn/data/formats/series/npy_records.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/io/formats/npy.h"

namespace rotrnn {
namespace {

NpyArray read_values(const OwnFiles& files, const OwnFiles::File& file) {
  NpyArray array(files.read(file), file.where);
  const auto& shape = array.shape();
  if (shape.size() != 2 && shape.size() != 3) {
    fail(file.where, fmt::format("an array of {}; write [count, time, channels] or [count, time]",
                                 npy_shape(shape)));
  }
  if (array.size() == 0) {
    fail(file.where, fmt::format("an array of {}: it is empty", npy_shape(shape)));
  }
  return array;
}

// The targets of the series of one array.
struct Targets {
  std::vector<int64_t> classes, groups;
  std::vector<double> values;
  int64_t width = 0;  // numbers of one series
};

void check_shape(const NpyArray& values, const NpyArray& labels, bool one_a_step, bool several) {
  const auto& shape = labels.shape();
  const auto& of = values.shape();
  const bool fits = one_a_step ? shape.size() == 2 && shape[0] == of[0] && shape[1] == of[1]
                               : (shape.size() == 1 || (several && shape.size() == 2)) &&
                                     shape[0] == of[0] && labels.size() > 0;
  if (!fits) {
    fail(labels.name(),
         fmt::format(
             "an array of {} for the {} of {}; write {}", npy_shape(shape), npy_shape(of),
             values.name(),
             one_a_step ? "[count, time]" : (several ? "[count] or [count, values]" : "[count]")));
  }
}

Targets read_targets(const OwnFiles& files, const OwnPair& pair, const NpyArray& values,
                     TaskTarget target) {
  Targets out;
  for (const OwnFiles::File& file : pair.groups) {
    const NpyArray groups(files.read(file), file.where);
    check_shape(values, groups, false, false);
    out.groups = groups.integers();
  }
  for (const OwnFiles::File& file : pair.labels) {
    if (target == TaskTarget::forecast) break;
    const NpyArray labels(files.read(file), file.where);
    check_shape(values, labels, target == TaskTarget::token_label, target == TaskTarget::value);
    out.width = labels.row_size();
    if (target == TaskTarget::value) {
      out.values = labels.numbers();
    } else {
      out.classes = labels.integers();
    }
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      if (!std::isfinite(static_cast<float>(out.values[i]))) {
        fail(file.where,
             fmt::format("value {} is {}; fill in missing values first", i, out.values[i]));
      }
    }
  }
  return out;
}

void check_finite(const NpyArray& array, int64_t row, std::span<const float> values) {
  const int64_t channels = array.shape().size() == 3 ? array.shape()[2] : 1;
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    if (std::isfinite(values[static_cast<std::size_t>(i)])) continue;
    const auto at = array.shape().size() == 3
                        ? fmt::format("[{}, {}, {}]", row, i / channels, i % channels)
                        : fmt::format("[{}, {}]", row, i);
    fail(array.name(),
         fmt::format("value {} is {}; fill in missing values first, and keep within the range of "
                     "single precision",
                     at, values[static_cast<std::size_t>(i)]));
  }
}

void add_array(const OwnPair& pair, const NpyArray& array, const Targets& targets,
               TaskTarget target, RecordWriter& out) {
  std::vector<float> values(static_cast<std::size_t>(array.row_size()));
  for (int64_t row = 0; row < array.rows(); ++row) {
    array.copy_row(row, values.data());
    check_finite(array, row, values);
    Record record;
    record.name = fmt::format("{}:{}", pair.values.id, row);
    record.split = pair.values.split;
    const auto first = static_cast<std::size_t>(row * targets.width);
    const auto width = static_cast<std::size_t>(targets.width);
    if (!targets.groups.empty()) {
      record.group = std::to_string(targets.groups[static_cast<std::size_t>(row)]);
    }
    for (std::size_t i = first; !targets.values.empty() && i < first + width; ++i) {
      record.values.push_back(static_cast<float>(targets.values[i]));
    }
    for (std::size_t i = first; !targets.classes.empty() && i < first + width; ++i) {
      const std::string name = std::to_string(targets.classes[i]);
      if (target == TaskTarget::label) {
        record.label = name;
      } else {
        record.token_classes.push_back(out.class_number(name));
      }
    }
    out.add_values(std::move(record), std::span<const float>(values));
  }
}

}  // namespace

void read_npy_records(const ReadRequest& request, RecordWriter& out) {
  const TaskTarget target = request.options.target;
  const OwnFiles files(request, {".npy"});
  for (const OwnPair& pair :
       pair_files(files, request.labelled && target != TaskTarget::forecast)) {
    const NpyArray values = read_values(files, pair.values);
    out.form({Element::f32, values.shape().size() == 3 ? values.shape()[2] : 1, 1, 1},
             pair.values.where);
    const Targets targets =
        request.labelled ? read_targets(files, pair, values, target) : Targets{};
    add_array(pair, values, targets, target, out);
  }
}

}  // namespace rotrnn
