#include "rotrnn/data/formats/idx_records.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/io/formats/idx.h"

namespace rotrnn {
namespace {

void read_pair(const ReadRequest& request, const OwnFiles& files, const OwnPair& pair,
               RecordWriter& out) {
  const std::string& where = pair.values.where;
  const IdxArray images = parse_idx(files.read(pair.values), where, 3);
  const int64_t pixels = images.shape[1] * images.shape[2];
  if (images.data.empty()) fail(where, "there are no pixels in it");
  IdxArray labels;
  if (request.labelled) {
    labels = parse_idx(files.read(pair.labels[0]), pair.labels[0].where, 1);
    if (labels.shape[0] != images.shape[0]) {
      fail(pair.labels[0].where,
           fmt::format("{} labels for the {} images of {}; the two files do not belong together",
                       labels.shape[0], images.shape[0], where));
    }
  }
  for (int64_t i = 0; i < images.shape[0]; ++i) {
    Record record;
    record.name = fmt::format("{}:{}", pair.values.id, i);
    record.split = pair.values.split;
    if (request.labelled) record.label = std::to_string(labels.data[static_cast<std::size_t>(i)]);
    out.add_values(std::move(record), std::span<const uint8_t>(images.data.data() + i * pixels,
                                                               static_cast<std::size_t>(pixels)));
  }
}

}  // namespace

void read_idx_records(const ReadRequest& request, RecordWriter& out) {
  require_target(request.options, {TaskTarget::label});
  const OwnFiles files(request, {"-ubyte", ".ubyte", ".idx"});
  out.form({Element::u8, 1, 1.0 / 255, 1}, request.path.string());
  for (const OwnPair& pair : pair_files(files, request.labelled)) {
    read_pair(request, files, pair, out);
  }
}

}  // namespace rotrnn
