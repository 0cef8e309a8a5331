#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/data/pattern.h"
#include "rotrnn/data/records.h"

// Users' own files by class: FOLDER/CLASS/FILE, or FOLDER/{train,validation,test}/CLASS/FILE, in a
// folder or an archive; or anything from the names by task.label_pattern.

namespace rotrnn {

/// The files of a request with what their names say of them.
class ClassFolder {
 public:
  /// Files whose names end in one of `endings` (in small letters, with the dot). Names of examples
  /// leave out the folders that all files are in. std::runtime_error when there are no such files,
  /// or one has no class.
  ClassFolder(const ReadRequest& request, const std::vector<std::string_view>& endings);

  /// Reads the files; `where` is how messages call one.
  void visit(const std::function<void(Record record, const std::string& where,
                                      std::string_view bytes)>& visit) const;

 private:
  void describe(const std::vector<std::string>& names);
  void set_target(Record& record, const std::string& where, const std::string& folder,
                  const Pattern& label) const;

  const ReadRequest& request_;
  std::map<std::string, Record> records_;  // by the name of the file
};

}  // namespace rotrnn
