#include "rotrnn/data/tasks/imdb.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/data/prepare/prepare.h"
#include "rotrnn/data/tasks/paper_facts.h"
#include "rotrnn/data/tasks/set_files.h"

namespace rotrnn {
namespace {

const RecordForm kImdbForm{Element::u8, 1, 1, 1};

// The record of a review by its name, without what is in front of train/ or test/.
std::optional<Record> record_of(const std::string& name) {
  if (!name.ends_with(".txt") || is_hidden(name)) return std::nullopt;
  Record r;
  r.name = name_tail(name, 3);
  for (const auto& [folder, split] :
       {std::pair("train", Split::train), std::pair("test", Split::test)}) {
    for (const char* label : {"neg", "pos"}) {
      if (!r.name.starts_with(fmt::format("{}/{}/", folder, label))) continue;
      r.split = split;
      r.label = label;
      return r;
    }
  }
  return std::nullopt;
}

void read_labelled(const ReadRequest& request, RecordWriter& out) {
  std::map<std::pair<Split, std::string>, int64_t> counts;
  visit_set(
      request, [](const std::string& name) { return record_of(name).has_value(); },
      [&](const SetFile& file) {
        check_text(file.bytes, file.where);
        Record record = *record_of(file.name);
        ++counts[{record.split, record.label}];
        out.add_text(std::move(record), file.bytes);
      });
  for (const auto& [folder, split] :
       {std::pair("train", Split::train), std::pair("test", Split::test)}) {
    for (const char* label : {"neg", "pos"}) {
      if (counts[{split, label}] == 0) {
        fail_missing(request, fmt::format("{}/{}/*.txt", folder, label),
                     "the folder aclImdb, or aclImdb_v1.tar.gz as downloaded");
      }
    }
  }
}

}  // namespace

void read_imdb(const ReadRequest& request, RecordWriter& out) {
  require_one_path(request);
  out.form(kImdbForm, request.path.string());
  out.classes({"neg", "pos"});
  if (request.labelled) {
    read_labelled(request, out);
    return;
  }
  visit_set(
      request, [](const std::string& name) { return name.ends_with(".txt") && !is_hidden(name); },
      [&](const SetFile& file) {
        check_text(file.bytes, file.where);
        Record record;
        record.name = file.name;
        out.add_text(std::move(record), file.bytes);
      });
}

Preprocessing prepare_imdb(const TaskOptions& options, const Records& records,
                           std::span<const int64_t> train) {
  TaskOptions limited = options;
  if (limited.max_tokens == 0) limited.max_tokens = kTextTokens;
  return prepare_text(limited, records, train);
}

void read_text_line(Record record, const std::string& line, RecordWriter& out) {
  if (line.empty()) throw std::invalid_argument("an empty line; write a text");
  const std::size_t at = find_not_utf8(line);
  if (at != std::string::npos) {
    throw std::invalid_argument(fmt::format("byte {}: {}", at, not_utf8_message(line, at)));
  }
  out.form(kImdbForm, "text");
  out.add_text(std::move(record), line);
}

SampleInput imdb_sample(const TaskOptions&) {
  return {"One of the best films I have seen in years, with a wonderful cast.", false};
}

}  // namespace rotrnn
