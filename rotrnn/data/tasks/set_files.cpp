#include "rotrnn/data/tasks/set_files.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/io/archive.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn {

void visit_set(const ReadRequest& request, const Wanted& wanted,
               const std::function<void(const SetFile& file)>& visit) {
  if (is_one_file(request)) {
    const std::string name = request.path.filename().string(), where = request.path.string();
    const std::string bytes = read_file(request.path);
    visit({name, where, bytes});
    return;
  }
  visit_files(request.path, wanted, [&](const std::string& name, std::string_view bytes) {
    const std::string where = file_label(request.path, name);
    visit({name, where, bytes});
  });
}

void fail_missing(const ReadRequest& request, const std::string& what,
                  const std::string& expected) {
  throw std::runtime_error(fmt::format("{}: there is no {} in it; task.path must be {}",
                                       request.path.string(), what, expected));
}

void require_one_path(const ReadRequest& request) {
  if (request.split == Split::any) return;
  throw std::invalid_argument(fmt::format(
      "task.train_path: task \"{}\" has splits of its own; give task.path", request.options.name));
}

bool is_one_file(const ReadRequest& request) {
  return !request.labelled && std::filesystem::is_regular_file(request.path) &&
         !is_archive(request.path);
}

void check_text(std::string_view text, const std::string& where) {
  if (text.empty()) throw std::runtime_error(where + ": the text is empty; remove the file");
  const std::size_t at = find_not_utf8(text);
  if (at == std::string_view::npos) return;
  throw std::runtime_error(fmt::format("{}: offset {}: {}", where, at, not_utf8_message(text, at)));
}

}  // namespace rotrnn
