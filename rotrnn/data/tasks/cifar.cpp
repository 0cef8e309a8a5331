#include "rotrnn/data/tasks/cifar.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "rotrnn/data/tasks/paper_facts.h"
#include "rotrnn/data/tasks/set_files.h"
#include "rotrnn/io/formats/image.h"

namespace rotrnn {
namespace {

constexpr double kGreyMean = 122.6 / 255, kGreyDeviation = 61.0 / 255;

bool is_train(std::string_view file) {
  return file.starts_with("data_batch_") && file.ends_with(".bin");
}

bool is_test(std::string_view file) {
  return file == "test_batch.bin";
}

Image to_image(const char* planes) {
  Image image{kCifarSide, kCifarSide, 3, std::vector<uint8_t>(3 * kCifarPixels)};
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < kCifarPixels; ++i) {
      image.pixels[static_cast<size_t>(3 * i + c)] =
          static_cast<uint8_t>(planes[c * kCifarPixels + i]);
    }
  }
  return image;
}

void read_file_of(const ReadRequest& request, const SetFile& file, Split split,
                  const std::vector<std::string>& classes, RecordWriter& out) {
  const std::string name(name_tail(file.name, 1));
  int64_t number = 0;
  parse_cifar(file.bytes, file.where, [&](int label, std::span<const uint8_t> pixels) {
    Record record;
    // In the order of the file when sorted by name: archives have the files in any order.
    record.name = fmt::format("{}:{:05}", name.substr(0, name.rfind(".bin")), number++);
    record.split = split;
    if (request.labelled) record.label = classes[static_cast<size_t>(label)];
    out.add_values(std::move(record), pixels);
  });
}

}  // namespace

void parse_cifar(std::string_view bytes, const std::string& where,
                 const std::function<void(int, std::span<const uint8_t>)>& visit) {
  constexpr auto kSize = static_cast<std::size_t>(kCifarRecord);
  const auto fail = [&](std::size_t offset, const std::string& what) {
    throw std::runtime_error(fmt::format("{}: offset {}: {}", where, offset, what));
  };
  if (bytes.empty()) fail(0, "the file is empty; is the download complete?");
  if (bytes.size() % kSize != 0) {
    fail(bytes.size() - bytes.size() % kSize,
         fmt::format("{} bytes are left, a record has {}; the file is cut off or of another format",
                     bytes.size() % kSize, kSize));
  }
  for (std::size_t at = 0; at < bytes.size(); at += kSize) {
    const auto label = static_cast<unsigned char>(bytes[at]);
    if (label > 9) {
      fail(at, fmt::format("label {}; labels are 0 to 9. Is it CIFAR-10, binary version?", label));
    }
    visit(label, to_grey(to_image(bytes.data() + at + 1)).pixels);
  }
}

void read_cifar(const ReadRequest& request, RecordWriter& out) {
  require_one_path(request);
  out.form({Element::u8, 1, 1.0 / 255, 1}, request.path.string());
  const auto classes = image_facts(request.options).classes;
  out.classes(classes);
  bool train = false, test = false;
  visit_set(
      request,
      [](const std::string& name) {
        return !is_hidden(name) && (is_train(name_tail(name, 1)) || is_test(name_tail(name, 1)));
      },
      [&](const SetFile& file) {
        const bool of_train = is_train(name_tail(file.name, 1));
        (of_train ? train : test) = true;
        read_file_of(request, file,
                     !request.labelled ? Split::any
                     : of_train        ? Split::train
                                       : Split::test,
                     classes, out);
      });
  if (request.labelled && !(train && test)) {
    fail_missing(request, train ? "test_batch.bin" : "data_batch_*.bin",
                 "the folder cifar-10-batches-bin, or cifar-10-binary.tar.gz as downloaded");
  }
}

Preprocessing prepare_cifar(const TaskOptions& options, const Records& records,
                            std::span<const int64_t>) {
  return options.normalisation == Scaling::none
             ? fixed_scale(records.form, 0, 1, options.max_tokens)
             : fixed_scale(records.form, kGreyMean, kGreyDeviation, options.max_tokens);
}

}  // namespace rotrnn
