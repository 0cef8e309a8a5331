#include "rotrnn/data/formats/folders/image_folder.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "rotrnn/data/formats/folders/class_folder.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/io/formats/image.h"

namespace rotrnn {

void read_image_folder(const ReadRequest& request, RecordWriter& out) {
  require_target(request.options, {TaskTarget::label, TaskTarget::value});
  const ClassFolder files(request, {".png", ".jpg", ".jpeg"});
  int64_t width = 0, height = 0;
  files.visit([&](Record record, const std::string& where, std::string_view bytes) {
    const Image image = decode_image(bytes, where);
    if (width != 0 && (image.width != width || image.height != height)) {
      throw std::runtime_error(fmt::format(
          "{}: {} × {} pixels, the files before it have {} × {}; scale them to one size", where,
          image.width, image.height, width, height));
    }
    width = image.width;
    height = image.height;
    out.form({Element::u8, image.channels, 1.0 / 255, 1}, where);
    out.add_values(std::move(record), std::span<const uint8_t>(image.pixels));
  });
}

}  // namespace rotrnn
