#include "rotrnn/cli/checkpoint_option.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

namespace rotrnn::cli {

Which CheckpointOption::of(const std::string& run) const {
  if (!name.empty() && is_checkpoint(run)) {
    const auto folder = std::filesystem::absolute(std::filesystem::path(run) / "").parent_path();
    if (folder.filename() != name) {
      throw std::invalid_argument(
          fmt::format("{}: is a checkpoint itself, so --checkpoint {} does not apply; name "
                      "the run folder, or leave --checkpoint out",
                      run, name));
    }
  }
  return name == "last" ? Which::last : Which::best;
}

void add_checkpoint_option(CLI::App& command, CheckpointOption& option) {
  command.add_option("--checkpoint", option.name, "best (default) or last")
      ->check(CLI::IsMember({"best", "last"}));
}

}  // namespace rotrnn::cli
