#include "rotrnn/data/tasks/listops/listops_tsv.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "rotrnn/base/text/text_place.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

constexpr std::string_view header = "Source\tTarget";

bool next_line(std::istream& input, std::string& line) {
  if (!std::getline(input, line)) return false;
  // The public generator writes through Python's csv module, whose lines end in CR LF.
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

void read_header(std::istream& input, const TextPlace& place) {
  std::string line;
  if (!next_line(input, line))
    place.fail("the file is empty; write it again with \"rotrnn data make listops\"");
  if (line != header)
    place.fail(
        fmt::format("the header is {}; the first line must be Source<TAB>Target", excerpt(line)));
}

void read_example(std::string_view line, const TextPlace& place, ListOpsExamples& examples) {
  const size_t tab = line.find('\t');
  if (tab == line.npos)
    place.fail(fmt::format("no tab in {}; write Source<TAB>Target", excerpt(line)));
  const std::string_view source = line.substr(0, tab), target = line.substr(tab + 1);
  if (target.size() != 1 || target[0] < '0' || target[0] > '9')
    place.fail(fmt::format("the target is {}; write one digit, 0 to 9", excerpt(target)));
  try {
    const auto expression = tokenize_listops(source, UnknownWords::reject);
    if (expression.empty()) place.fail("the source is empty; write an expression before the tab");
    // Finds a line that was cut off. The value is not compared: another target may be on purpose.
    evaluate_listops(expression);
    examples.add(expression, target[0] - '0');
  } catch (const std::invalid_argument& error) {
    place.fail(error.what());
  }
}

struct File {
  const char* name;
  ListOpsExamples ListOpsSplits::*examples;
};
constexpr File files[] = {{"basic_train.tsv", &ListOpsSplits::train},
                          {"basic_val.tsv", &ListOpsSplits::validation},
                          {"basic_test.tsv", &ListOpsSplits::test}};

}  // namespace

ListOpsExamples parse_listops_tsv(std::istream& input, std::string_view name) {
  TextPlace place{name, 1};
  read_header(input, place);
  ListOpsExamples examples;
  for (std::string line; next_line(input, line);) {
    ++place.line;
    read_example(line, place, examples);
  }
  if (input.bad()) place.fail("the file cannot be read to its end; check the disk");
  return examples;
}

void write_listops_tsv(const std::filesystem::path& path, const ListOpsExamples& examples) {
  // In pieces: the text of the public training set has 600 MB.
  constexpr size_t piece = 1 << 20;
  AtomicFile file(path);
  std::string text = fmt::format("{}\n", header);
  for (int64_t i = 0; i < examples.size(); ++i) {
    text += fmt::format("{}\t{}\n", listops_source(examples.expression(i)), examples.labels[i]);
    if (text.size() < piece) continue;
    file.write(text.data(), text.size());
    text.clear();
  }
  file.write(text.data(), text.size());
  file.commit();
}

ListOpsExamples read_listops_tsv(const std::filesystem::path& path) {
  std::ifstream input(path, std::ios::binary);
  const int error = errno;
  if (!input || std::filesystem::is_directory(path))
    throw std::runtime_error(fmt::format(
        "{}: {}; make it with \"rotrnn data make listops\" or point to the folder of the public "
        "files",
        path.string(), input ? "this is a folder" : std::generic_category().message(error)));
  return parse_listops_tsv(input, path.string());
}

void write_listops_folder(const std::filesystem::path& folder, const ListOpsSplits& splits) {
  std::filesystem::create_directories(folder);
  for (const File& file : files) write_listops_tsv(folder / file.name, splits.*file.examples);
}

ListOpsSplits read_listops_folder(const std::filesystem::path& folder) {
  ListOpsSplits splits;
  for (const File& file : files) splits.*file.examples = read_listops_tsv(folder / file.name);
  return splits;
}

}  // namespace rotrnn
