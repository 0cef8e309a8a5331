#include "rotrnn/data/task_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "rotrnn/base/text/nearest.h"
#include "rotrnn/data/formats/folders/audio_folder.h"
#include "rotrnn/data/formats/folders/image_folder.h"
#include "rotrnn/data/formats/folders/text_folder.h"
#include "rotrnn/data/formats/idx_records.h"
#include "rotrnn/data/formats/series/npy_records.h"
#include "rotrnn/data/formats/series/series_records.h"
#include "rotrnn/data/formats/series/ts_records.h"
#include "rotrnn/data/formats/tables/csv_records.h"
#include "rotrnn/data/prepare/prepare.h"
#include "rotrnn/data/tasks/cifar.h"
#include "rotrnn/data/tasks/imdb.h"
#include "rotrnn/data/tasks/listops/listops_task.h"
#include "rotrnn/data/tasks/mnist.h"
#include "rotrnn/data/tasks/paper_facts.h"
#include "rotrnn/data/tasks/pathfinder/pathfinder.h"
#include "rotrnn/data/tasks/retrieval.h"
#include "rotrnn/data/tasks/speech_commands.h"

namespace rotrnn {
namespace {

using Order = RecordWriter::Order;

constexpr Task kTasks[] = {
    {"listops", "nested lists of digits; made on the spot, or the public files", false,
     read_listops, make_listops, Order::as_added, prepare_listops, listops_facts, read_listops_line,
     true, listops_sample},
    {"mnist", "sequential MNIST, 784 pixels; permuted with task.permuted", false, read_mnist,
     nullptr, Order::as_added, prepare_mnist, mnist_facts, nullptr, false, mnist_sample},
    {"text", "reviews of films, good or bad (IMDB), by characters", false, read_imdb, nullptr,
     Order::by_name, prepare_imdb, text_facts, read_text_line, false, imdb_sample},
    {"retrieval", "pairs of papers, one citing the other or not (AAN), by characters", false,
     read_retrieval, nullptr, Order::by_name, prepare_retrieval, retrieval_facts,
     read_retrieval_line, false, retrieval_sample},
    {"image", "CIFAR-10 in grey, 1,024 pixels", false, read_cifar, nullptr, Order::by_name,
     prepare_cifar, image_facts, nullptr, false, nullptr},
    {"pathfinder", "are two marks on one dashed curve? 1,024 pixels; made on the spot, or files",
     false, read_pathfinder, make_pathfinder, Order::by_name, prepare_pathfinder, pathfinder_facts,
     nullptr, false, nullptr},
    {"pathx", "the same with 16,384 pixels", false, read_pathx, make_pathx, Order::by_name,
     prepare_pathfinder, pathx_facts, nullptr, false, nullptr},
    {"speech_commands", "spoken words, 16,000 samples per second", false, read_speech_commands,
     nullptr, Order::by_name, prepare_values, speech_commands_facts, nullptr, false, nullptr},
    {"audio_folder", "your sound files, one folder per class", true, read_audio_folder, nullptr,
     Order::by_name, prepare_values, nullptr, nullptr, false, nullptr},
    {"text_folder", "your texts, one folder per class", true, read_text_folder, nullptr,
     Order::by_name, prepare_text, nullptr, read_text_line, false, nullptr},
    {"image_folder", "your pictures, one folder per class", true, read_image_folder, nullptr,
     Order::by_name, prepare_values, nullptr, nullptr, false, nullptr},
    {"csv", "a table with one row per example: a text or a series in a column", true,
     read_csv_records, nullptr, Order::as_added, prepare_either, nullptr, read_text_line, false,
     nullptr},
    {"series", "tables with one row per time step, one column per channel", true,
     read_series_records, nullptr, Order::as_added, prepare_values, nullptr, nullptr, false,
     nullptr},
    {"npy", "NumPy arrays [count, time, channels] with an array of labels", true, read_npy_records,
     nullptr, Order::as_added, prepare_values, nullptr, nullptr, false, nullptr},
    {"ts", "time series in the .ts format of the UCR and UEA archives", true, read_ts_records,
     nullptr, Order::as_added, prepare_values, nullptr, nullptr, false, nullptr},
    {"idx", "images and labels in IDX files as those of MNIST, pixel by pixel", true,
     read_idx_records, nullptr, Order::as_added, prepare_values, nullptr, nullptr, false, nullptr},
};

}  // namespace

std::span<const Task> all_tasks() {
  return kTasks;
}

const Task& find_task(const std::string& name) {
  std::vector<std::string> names;
  for (const Task& task : kTasks) {
    if (name == task.name) return task;
    names.emplace_back(task.name);
  }
  const std::string near = nearest(name, names);
  throw std::invalid_argument(fmt::format(
      "task.name: unknown task \"{}\"; {}", name,
      near.empty()
          ? fmt::format("there are {}", fmt::join(names, ", "))
          : fmt::format("did you mean \"{}\"? There are {}", near, fmt::join(names, ", "))));
}

std::vector<TaskSummary> task_summaries() {
  std::vector<TaskSummary> out;
  for (const Task& task : kTasks) out.push_back({task.name, task.summary, task.own});
  return out;
}

}  // namespace rotrnn
