#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rotrnn/data/records.h"
#include "rotrnn/io/files.h"

// The files of a public data set: its folder, or its archive as downloaded.

namespace rotrnn {

/// A file on its way.
struct SetFile {
  const std::string& name;   // relative, with '/'
  const std::string& where;  // how messages call it
  std::string_view bytes;
};

/// Visits the wanted files of a request's folder or archive. To predict, the path may also be one
/// file, which is wanted whatever its name.
void visit_set(const ReadRequest& request, const Wanted& wanted,
               const std::function<void(const SetFile& file)>& visit);

/// The path as a name for messages, with what task.path should be: for a set that lacks files.
[[noreturn]] void fail_missing(const ReadRequest& request, const std::string& what,
                               const std::string& expected);

/// std::invalid_argument when a set with splits of its own is asked for by task.train_path.
void require_one_path(const ReadRequest& request);

/// Whether a path to predict is one file, not a folder or an archive.
bool is_one_file(const ReadRequest& request);

/// `where: offset N: …` when the text is empty or not UTF-8.
void check_text(std::string_view text, const std::string& where);

}  // namespace rotrnn
