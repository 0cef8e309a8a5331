#include "rotrnn/data/tasks/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "rotrnn/base/text/nearest.h"

namespace rotrnn {
namespace {

constexpr const char* kLra = "https://storage.googleapis.com/long-range-arena/lra_release.gz";
constexpr const char* kLraArchive = "lra_release.tar.gz";
constexpr const char* kSpeech = "http://download.tensorflow.org/data/";

std::vector<DataSource> make_sources() {
  std::vector<DataSource> all;
  all.push_back({"listops",
                 "ListOps of the Long Range Arena",
                 kLra,
                 "7.7 GB",
                 kLraArchive,
                 {},
                 {"listops-1000"},
                 "or rotrnn data make listops"});
  all.push_back({"text",
                 "IMDB reviews",
                 "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                 "84 MB",
                 "aclImdb_v1.tar.gz",
                 {},
                 {},
                 ""});
  all.push_back({"retrieval",
                 "pairs of ACL Anthology papers (AAN)",
                 kLra,
                 "7.7 GB",
                 kLraArchive,
                 {},
                 {"tsv_data"},
                 ""});
  all.push_back({"image",
                 "CIFAR-10, binary version",
                 "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                 "170 MB",
                 "cifar-10-binary.tar.gz",
                 {},
                 {},
                 ""});
  all.push_back({"mnist",
                 "MNIST, four IDX files",
                 "https://storage.googleapis.com/cvdf-datasets/mnist",
                 "12 MB",
                 "",
                 {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                  "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"},
                 {},
                 ""});
  all.push_back({"pathfinder",
                 "Pathfinder, 32 × 32 pixels",
                 kLra,
                 "7.7 GB",
                 kLraArchive,
                 {},
                 {"pathfinder32"},
                 "or rotrnn data make pathfinder"});
  all.push_back({"pathx",
                 "Path-X, Pathfinder of 128 × 128 pixels",
                 kLra,
                 "7.7 GB",
                 kLraArchive,
                 {},
                 {"pathfinder128"},
                 "or rotrnn data make pathx"});
  for (const auto& [name, version, words, size] :
       {std::tuple("speech_commands", "v0.02", 35, "2.4 GB"),
        std::tuple("speech_commands_v1", "v0.01", 30, "1.5 GB")}) {
    const std::string archive = fmt::format("speech_commands_{}.tar.gz", version);
    all.push_back({name,
                   fmt::format("Speech Commands {}, {} words", version, words),
                   kSpeech + archive,
                   size,
                   archive,
                   {},
                   {},
                   ""});
  }
  return all;
}

}  // namespace

const std::vector<DataSource>& data_sources() {
  static const std::vector<DataSource> sources = make_sources();
  return sources;
}

const DataSource& find_source(std::string_view task) {
  std::vector<std::string> names;
  for (const DataSource& source : data_sources()) {
    if (source.task == task) return source;
    names.push_back(source.task);
  }
  const std::string near = nearest(task, names);
  throw std::invalid_argument(fmt::format("there is nothing to download for \"{}\"; {}", task,
                                          near.empty()
                                              ? fmt::format("known are {}", fmt::join(names, ", "))
                                              : fmt::format("did you mean \"{}\"?", near)));
}

bool belongs(const DataSource& source, std::string_view name) {
  const std::string framed = fmt::format("/{}/", name);
  return source.parts.empty() ||
         std::any_of(source.parts.begin(), source.parts.end(), [&](const std::string& part) {
           return framed.find(fmt::format("/{}/", part)) != std::string::npos;
         });
}

}  // namespace rotrnn
