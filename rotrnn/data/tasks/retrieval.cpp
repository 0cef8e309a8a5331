#include "rotrnn/data/tasks/retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rotrnn/base/text/number.h"
#include "rotrnn/base/text/utf8.h"
#include "rotrnn/data/prepare/prepare.h"
#include "rotrnn/data/tasks/paper_facts.h"
#include "rotrnn/data/tasks/set_files.h"
#include "rotrnn/io/lines.h"

namespace rotrnn {
namespace {

const RecordForm kRetrievalForm{Element::u8, 1, 1, 2};

struct PairFile {
  const char *file, *name;
  Split split;
};
constexpr std::array<PairFile, 3> kFiles{{{"new_aan_pairs.train.tsv", "train", Split::train},
                                          {"new_aan_pairs.eval.tsv", "eval", Split::validation},
                                          {"new_aan_pairs.test.tsv", "test", Split::test}}};

const PairFile* find_file(const std::string& name) {
  const auto found = std::find_if(kFiles.begin(), kFiles.end(), [&](const PairFile& f) {
    return name_tail(name, 1) == f.file && !is_hidden(name);
  });
  return found == kFiles.end() ? nullptr : &*found;
}

int64_t tokens_of(const TaskOptions& o) {
  return o.max_tokens > 0 ? o.max_tokens : kRetrievalTokens;
}

// Papers are long, and most of a text would never be seen.
std::string_view first_characters(std::string_view text, int64_t count) {
  std::size_t at = 0;
  while (count-- > 0 && at < text.size()) next_code_point(text, at);
  return text.substr(0, at);
}

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (;;) {
    const std::size_t tab = line.find('\t');
    columns.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return columns;
    line.remove_prefix(tab + 1);
  }
}

void check_utf8(std::string_view line, const TextPlace& place) {
  const std::size_t at = find_not_utf8(line);
  if (at != std::string_view::npos) {
    place.fail(fmt::format("byte {} of the line: {}", at, not_utf8_message(line, at)));
  }
}

// Two columns are texts alone.
RetrievalPair parse_unlabelled(std::string_view line, const TextPlace& place) {
  const auto columns = columns_of(line);
  if (columns.size() != 2) return parse_retrieval(line, place);
  check_utf8(line, place);
  return {false, columns[0], columns[1]};
}

void add(Record record, const RetrievalPair& pair, int64_t tokens, RecordWriter& out) {
  const auto bytes = [&](std::string_view text) {
    const std::string_view kept = first_characters(text, tokens);
    return std::as_bytes(std::span(kept.data(), kept.size()));
  };
  const std::array<std::span<const std::byte>, 2> texts{bytes(pair.first), bytes(pair.second)};
  out.add(std::move(record), texts);
}

void read_lines(const ReadRequest& request, const PairFile& file, const std::string& where,
                const ReadBytes& read, RecordWriter& out) {
  LineReader lines(read, where);
  std::string_view line;
  while (lines.next(line)) {
    const TextPlace place = lines.place();
    const RetrievalPair pair =
        request.labelled ? parse_retrieval(line, place) : parse_unlabelled(line, place);
    if (pair.first.empty() || pair.second.empty()) {
      out.skip(fmt::format("{}:{}: one of the two texts is empty", where, place.line));
      continue;
    }
    Record record;
    // In the order of the lines when sorted by name: archives have the files in any order.
    record.name = fmt::format("{}:{:07}", file.name, place.line);
    record.split = file.split;
    if (request.labelled) record.label.assign(1, pair.cited ? '1' : '0');
    add(std::move(record), pair, tokens_of(request.options), out);
  }
}

void read_one_file(const ReadRequest& request, RecordWriter& out) {
  const std::string name = request.path.filename().string(), where = request.path.string();
  stream_file(request.path, [&](const ReadBytes& read) {
    read_lines(request, {name.c_str(), name.c_str(), Split::any}, where, read, out);
  });
}

}  // namespace

RetrievalPair parse_retrieval(std::string_view line, const TextPlace& place) {
  const auto columns = columns_of(line);
  if (columns.size() != 5) {
    place.fail(fmt::format("{} column(s); a line is label, id, id, text, text, separated by tabs",
                           columns.size()));
  }
  check_utf8(line, place);
  const auto label = to_number(columns[0]);
  if (label != 0 && label != 1) {
    place.fail(fmt::format("the label is {}; labels are 0 and 1", excerpt(columns[0])));
  }
  return {label == 1, columns[3], columns[4]};
}

void read_retrieval(const ReadRequest& request, RecordWriter& out) {
  require_one_path(request);
  out.form(kRetrievalForm, request.path.string());
  out.classes({"0", "1"});
  if (is_one_file(request)) {
    read_one_file(request, out);
    return;
  }
  std::set<std::string> seen;
  stream_files(
      request.path, [](const std::string& name) { return find_file(name) != nullptr; },
      [&](const std::string& name, const ReadBytes& read) {
        const PairFile& file = *find_file(name);
        seen.insert(file.file);
        read_lines(request, file, file_label(request.path, name), read, out);
      });
  for (const PairFile& file : kFiles) {
    if (seen.contains(file.file)) continue;
    fail_missing(request, file.file,
                 "a folder with new_aan_pairs.{train,eval,test}.tsv, or the archive of the Long "
                 "Range Arena");
  }
}

Preprocessing prepare_retrieval(const TaskOptions& options, const Records& records,
                                std::span<const int64_t> train) {
  TaskOptions limited = options;
  limited.max_tokens = tokens_of(options);
  return prepare_text(limited, records, train);
}

void read_retrieval_line(Record record, const std::string& line, RecordWriter& out) {
  RetrievalPair pair;
  try {
    pair = parse_unlabelled(line, {"line", 1});
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
  if (pair.first.empty() || pair.second.empty()) {
    throw std::invalid_argument("one of the two texts is empty; write text, tab, text");
  }
  out.form(kRetrievalForm, "retrieval");
  add(std::move(record), pair, std::ssize(line), out);  // the network's own limit cuts it
}

SampleInput retrieval_sample(const TaskOptions&) {
  return {"We parse with a chart.\tChart parsing of free word order.", false};
}

}  // namespace rotrnn
