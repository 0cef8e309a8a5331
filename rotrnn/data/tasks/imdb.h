#pragma once

#include "rotrnn/data/task.h"

// Task "text": reviews of films, good or bad (Maas et al. 2011), as aclImdb/{train,test}/{pos,neg}/
// *.txt in a folder or in aclImdb_v1.tar.gz. There is no validation split in it.

namespace rotrnn {

/// Reads {train,test}/{pos,neg}/*.txt; other files of the set are passed over. To predict, any
/// files of text.
void read_imdb(const ReadRequest& request, RecordWriter& out);

/// At most kTextTokens where task.max_tokens does not say.
Preprocessing prepare_imdb(const TaskOptions& options, const Records& records,
                           std::span<const int64_t> train);

/// A review given as a line.
void read_text_line(Record record, const std::string& line, RecordWriter& out);

SampleInput imdb_sample(const TaskOptions& options);

}  // namespace rotrnn
