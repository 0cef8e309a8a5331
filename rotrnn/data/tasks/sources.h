#pragma once

#include <string>
#include <string_view>
#include <vector>

// Where the data of the tasks are published.

namespace rotrnn {

/// The public files of a task.
struct DataSource {
  std::string task;                // what `rotrnn data download` calls it
  std::string what;                // a few words
  std::string url;                 // of the file, or of the folder that `files` are in
  std::string size;                // of the download, in words
  std::string archive;             // name of the archive; empty: plain files
  std::vector<std::string> files;  // without an archive
  std::vector<std::string> parts;  // folders of the archive that belong to the task; empty: all
  std::string note;                // another way to get the data
};

/// All that can be fetched, in the order to show them in.
const std::vector<DataSource>& data_sources();

/// That of a task; std::invalid_argument with the nearest name when there is none.
const DataSource& find_source(std::string_view task);

/// Whether a file of the archive belongs to the task.
bool belongs(const DataSource& source, std::string_view name);

}  // namespace rotrnn
