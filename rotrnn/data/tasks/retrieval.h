#pragma once

#include <string_view>

#include "rotrnn/base/text/text_place.h"
#include "rotrnn/data/task.h"

// Task "retrieval": do two papers cite each other (ACL Anthology Network)? The files
// new_aan_pairs.{train,eval,test}.tsv of the Long Range Arena, in a folder or in its archive. A
// line is label, id, id, text, text, separated by tabs, without a header.

namespace rotrnn {

/// A line of such a file.
struct RetrievalPair {
  bool cited = false;
  std::string_view first, second;
};

/// Reads a line; std::runtime_error names the place when it has not five columns, a label other
/// than 0 or 1 (also written as 0.0 or 1.0), or is not UTF-8.
RetrievalPair parse_retrieval(std::string_view line, const TextPlace& place);

/// Reads the three files; of a text, what the network can see is kept. Pairs with an empty text are
/// skipped and counted. To predict, a file of such lines, or of text, tab, text.
void read_retrieval(const ReadRequest& request, RecordWriter& out);

/// At most kRetrievalTokens where task.max_tokens does not say.
Preprocessing prepare_retrieval(const TaskOptions& options, const Records& records,
                                std::span<const int64_t> train);

/// Two texts with a tab between them.
void read_retrieval_line(Record record, const std::string& line, RecordWriter& out);

SampleInput retrieval_sample(const TaskOptions& options);

}  // namespace rotrnn
