#pragma once

#include "rotrnn/data/task.h"

// ListOps as a task: records of its lists, made or read from the public files.

namespace rotrnn {

TaskFacts listops_facts(const TaskOptions& options);
void read_listops(const ReadRequest& request, RecordWriter& out);
void make_listops(const TaskOptions& options, int threads, RecordWriter& out);
Preprocessing prepare_listops(const TaskOptions& options, const Records& records,
                              std::span<const int64_t> train);
void read_listops_line(Record record, const std::string& line, RecordWriter& out);
SampleInput listops_sample(const TaskOptions& options);

}  // namespace rotrnn
