#include "rotrnn/onnx/export.h"

#include <fmt/format.h>

#include <deque>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/onnx/facts.h"
#include "rotrnn/onnx/network.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

OnnxKind kind_of(const std::string& graph) {
  for (size_t i = 0; i < std::size(kOnnxKinds); ++i) {
    if (graph == kOnnxKinds[i]) return static_cast<OnnxKind>(i);
  }
  throw std::invalid_argument(
      fmt::format("there is no ONNX graph \"{}\"; choose step, chunk, sequence or all", graph));
}

std::vector<OnnxFile> files_of(const OnnxRequest& request, bool streams) {
  if (request.graph != "all") return {{request.out, request.graph, 0}};
  fs::path stem = request.out;
  if (stem.extension() == ".onnx") stem.replace_extension();
  std::vector<OnnxFile> files;
  for (const char* graph : kOnnxKinds) {
    if (!streams && kind_of(graph) != OnnxKind::sequence) continue;
    files.push_back({fmt::format("{}.{}.onnx", stem.string(), graph), graph, 0});
  }
  return files;
}

}  // namespace

OnnxReport write_onnx(std::string bytes, const std::string& where, const OnnxRequest& request) {
  const OnnxSource source(std::move(bytes), where);
  OnnxReport report;
  report.whole_only = source.whole_only();
  const bool streams = report.whole_only.empty();
  if (source.file().frontend.used() && source.preprocessing().per_step) {
    throw std::invalid_argument(
        where +
        ": a front end behind a mean for every step has no ONNX graph; train with "
        "task.normalisation = \"standard\"");
  }
  if (request.graph != "all" && kind_of(request.graph) != OnnxKind::sequence && !streams) {
    throw std::invalid_argument(fmt::format("{}: {}, so there is no {} graph; use --graph sequence",
                                            where, report.whole_only, request.graph));
  }
  if (fs::is_directory(request.out)) {
    throw std::invalid_argument(fmt::format("{}: is a folder; give a file, such as {}",
                                            request.out.string(),
                                            (request.out / "model.onnx").string()));
  }
  report.files = files_of(request, streams);
  for (const OnnxFile& file : report.files) check_free(file.file, request.overwrite);
  std::deque<AtomicFile> written;  // that take their names when all are complete
  for (OnnxFile& file : report.files) {
    const OnnxKind kind = kind_of(file.graph);
    const std::string content =
        onnx_network(source, kind).model_bytes(onnx_facts(source, kind), onnx_usage(source, kind));
    file.bytes = static_cast<int64_t>(content.size());
    written.emplace_back(file.file).write(content.data(), content.size());
  }
  for (AtomicFile& file : written) file.commit();
  return report;
}

}  // namespace rotrnn
