#include "rotrnn/data/tasks/paper_facts.h"

#include <algorithm>

namespace rotrnn {
namespace {

TaskFacts tokens(int64_t vocabulary, int64_t length, int64_t limit,
                 std::vector<std::string> classes) {
  TaskFacts facts;
  facts.shape.inputs = vocabulary;
  facts.shape.outputs = std::ssize(classes);
  facts.typical_length = limit > 0 ? std::min(limit, length) : length;
  facts.classes = std::move(classes);
  return facts;
}

TaskFacts series(int64_t length, std::vector<std::string> classes) {
  TaskFacts facts;
  facts.shape.input = InputKind::channels;
  facts.shape.inputs = 1;
  facts.shape.outputs = std::ssize(classes);
  facts.typical_length = length;
  facts.classes = std::move(classes);
  return facts;
}

std::vector<std::string> numbered(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

int64_t tokens_of(const TaskOptions& o, int64_t characters) {
  return o.tokens == TokenKind::bytes ? 259 : characters;
}

}  // namespace

TaskFacts text_facts(const TaskOptions& o) {
  // Characters of the reviews that occur 15 times or more, with padding, unknown and end.
  return tokens(tokens_of(o, 135), 1325, o.max_tokens, {"neg", "pos"});
}

TaskFacts retrieval_facts(const TaskOptions& o) {
  // Most of the papers are longer than what is kept of them.
  const int64_t kept = o.max_tokens > 0 ? o.max_tokens : kRetrievalTokens;
  TaskFacts facts = tokens(tokens_of(o, 100), 2 * kept, 0, {"0", "1"});
  facts.shape.towers = 2;
  return facts;
}

TaskFacts image_facts(const TaskOptions&) {
  return series(1024, {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                       "ship", "truck"});
}

TaskFacts pathfinder_facts(const TaskOptions&) {
  return series(32 * 32, {"0", "1"});
}

TaskFacts pathx_facts(const TaskOptions&) {
  return series(128 * 128, {"0", "1"});
}

TaskFacts speech_commands_facts(const TaskOptions& o) {
  auto words = split_names(o.words);
  TaskFacts facts = series(16000 / o.keep_every, words.empty() ? numbered(35) : words);
  facts.shape.rate = 16000 / static_cast<double>(o.keep_every);
  return facts;
}

}  // namespace rotrnn
