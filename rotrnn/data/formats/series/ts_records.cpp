#include "rotrnn/data/formats/series/ts_records.h"

#include <fmt/format.h>

#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/io/formats/ts.h"

namespace rotrnn {
namespace {

void read_one(const ReadRequest& request, const OwnFiles::File& file, std::string_view content,
              RecordWriter& out) {
  TsReader reader(content, file.where, request.labelled);
  const TaskTarget target = request.options.target;
  if (request.labelled && target == TaskTarget::label && !reader.header().labelled) {
    reader.place().fail(
        "there is no @classLabel true; task.target may be \"value\" or \"forecast\"");
  }
  if (request.labelled && target == TaskTarget::value && !reader.header().targeted) {
    reader.place().fail("there is no @targetLabel true; task.target may be \"class\"");
  }
  for (TsSeries series; reader.next(series);) {
    out.form({Element::f32, reader.header().dimensions, 1, 1}, file.where);
    Record record;
    record.name = fmt::format("{}:{}", file.id, reader.place().line);
    record.split = file.split;
    if (request.labelled && target == TaskTarget::label) {
      record.label = reader.header().classes[static_cast<std::size_t>(series.label)];
    }
    if (request.labelled && target == TaskTarget::value) {
      record.values.push_back(series.target);
    }
    out.add_values(std::move(record), std::span<const float>(series.values));
  }
}

}  // namespace

void read_ts_records(const ReadRequest& request, RecordWriter& out) {
  require_target(request.options, {TaskTarget::label, TaskTarget::value, TaskTarget::forecast});
  const OwnFiles files(request, {".ts"});
  for (const OwnFiles::File& file : files.files()) read_one(request, file, files.read(file), out);
}

}  // namespace rotrnn
