#include "rotrnn/data/tasks/listops/listops_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "rotrnn/data/tasks/listops/listops_tsv.h"

namespace rotrnn {
namespace {

constexpr int64_t kMaxTokens = 2048;
const RecordForm kListOpsForm{Element::u8, 1, 1, 1};

int64_t max_tokens(const TaskOptions& o) {
  return o.max_tokens > 0 ? o.max_tokens : kMaxTokens;
}

std::vector<std::string> digits() {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(std::to_string(i));
  return names;
}

void add(const ListOpsExamples& lists, const char* name, Split split, RecordWriter& out) {
  for (int64_t i = 0; i < lists.size(); ++i) {
    Record r;
    r.name = fmt::format("{}:{}", name, i);
    r.split = split;
    r.label = std::to_string(lists.labels[i]);
    out.add_values(std::move(r), lists.expression(i));
  }
}

void add(const ListOpsSplits& splits, RecordWriter& out) {
  out.form(kListOpsForm, "listops");
  out.classes(digits());
  add(splits.train, "train", Split::train, out);
  add(splits.validation, "validation", Split::validation, out);
  add(splits.test, "test", Split::test, out);
}

}  // namespace

TaskFacts listops_facts(const TaskOptions& options) {
  TaskFacts facts;
  facts.shape.inputs = listops_token::count;
  facts.shape.outputs = 10;
  // What the generator gives on average in the Long Range Arena's setting is 1,050 of 2,000.
  facts.typical_length = std::min(max_tokens(options), (options.listops.max_length * 21) / 40);
  facts.classes = digits();
  return facts;
}

void read_listops(const ReadRequest& request, RecordWriter& out) {
  if (!std::filesystem::is_regular_file(request.path)) {
    add(read_listops_folder(request.path), out);
    return;
  }
  out.form(kListOpsForm, "listops");
  out.classes(digits());
  add(read_listops_tsv(request.path), request.path.filename().c_str(), request.split, out);
}

void make_listops(const TaskOptions& options, int threads, RecordWriter& out) {
  ListOpsCounts counts;  // the Long Range Arena's, where the options give none
  const auto set = [](int64_t& count, int64_t given) { count = given > 0 ? given : count; };
  set(counts.train, options.counts.train);
  set(counts.validation, options.counts.validation);
  set(counts.test, options.counts.test);
  add(generate_listops(options.listops, static_cast<uint64_t>(options.seed), counts, threads), out);
}

Preprocessing prepare_listops(const TaskOptions& options, const Records& records,
                              std::span<const int64_t>) {
  Preprocessing p;
  p.kind = Preprocessing::Kind::ids;
  p.form = records.form;
  p.vocabulary = listops_vocabulary();
  p.end_mark = true;
  p.max_length = max_tokens(options);
  return p;
}

void read_listops_line(Record record, const std::string& line, RecordWriter& out) {
  const auto tokens = tokenize_listops(line, UnknownWords::reject);
  if (tokens.empty()) throw std::invalid_argument("empty expression; write one such as [MAX 3 7 ]");
  evaluate_listops(tokens);  // says where a list is not closed, or has nothing in it
  out.form(kListOpsForm, "listops");
  out.add_values(std::move(record), std::span<const uint8_t>(tokens));
}

SampleInput listops_sample(const TaskOptions&) {
  return {"[MAX 2 9 [MIN 4 7 ] 0 ]", false};
}

}  // namespace rotrnn
