#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rotrnn {

struct OnnxRequest {
  std::filesystem::path out;  // of all graphs: each file has the name of its graph before ".onnx"
  std::string graph = "all";  // step, chunk, sequence, or all that the model has
  bool overwrite = false;
};

/// A file that was written.
struct OnnxFile {
  std::filesystem::path file;
  std::string graph;
  int64_t bytes = 0;
};

/// What was written, and why nothing more.
struct OnnxReport {
  std::vector<OnnxFile> files;
  std::string whole_only;  // why there are whole sequences only; "" when the model streams
};

/// Writes the graphs of a folded model (docs/deploy.md), each checked by ONNX's own checker; all
/// files or none. `bytes` are those of the folded model, `where` names it in messages.
/// std::invalid_argument for a graph that such a model has not, and for a file that exists.
OnnxReport write_onnx(std::string bytes, const std::string& where, const OnnxRequest& request);

}  // namespace rotrnn
