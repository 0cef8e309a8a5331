#pragma once

#include <filesystem>
#include <istream>
#include <string_view>

#include "rotrnn/data/tasks/listops/listops.h"

// The public files of the Long Range Arena, `basic_{train,val,test}.tsv`: a header, then per line
// the expression in binary form, a tab, and its value.

namespace rotrnn {

/// Reads the content of a file; a malformed line throws std::runtime_error, `name:line: ...`.
ListOpsExamples parse_listops_tsv(std::istream& input, std::string_view name);

/// Writes one file, whole or not at all.
void write_listops_tsv(const std::filesystem::path& path, const ListOpsExamples& examples);

/// Reads one file.
ListOpsExamples read_listops_tsv(const std::filesystem::path& path);

/// Writes the three files into a folder, which is made if need be.
void write_listops_folder(const std::filesystem::path& folder, const ListOpsSplits& splits);

/// Reads the three files of a folder.
ListOpsSplits read_listops_folder(const std::filesystem::path& folder);

}  // namespace rotrnn
