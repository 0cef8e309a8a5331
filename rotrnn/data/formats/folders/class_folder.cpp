#include "rotrnn/data/formats/folders/class_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "rotrnn/base/text/ascii.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/pattern.h"
#include "rotrnn/data/tasks/set_files.h"

namespace rotrnn {
namespace {

bool has_ending(const std::string& name, const std::vector<std::string_view>& endings) {
  const std::string small = ascii_lower(name);
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view e) { return small.ends_with(e); });
}

// "a" of "a/b/c", nothing of "c".
std::string first_folder(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? "" : std::string(name.substr(0, slash));
}

std::string_view without_first(std::string_view name) {
  return name.substr(name.find('/') + 1);
}

// Whether the first folders are splits: all of them, and one of them train.
bool are_splits(const std::vector<std::string>& names, bool need_class) {
  bool train = false;
  for (const std::string& name : names) {
    const Split split = split_of_word(ascii_lower(first_folder(name)));
    if (split == Split::any) return false;
    if (need_class && first_folder(without_first(name)).empty()) return false;
    train = train || split == Split::train;
  }
  return train;
}

}  // namespace

ClassFolder::ClassFolder(const ReadRequest& request, const std::vector<std::string_view>& endings)
    : request_(request) {
  std::vector<std::string> names;
  if (is_one_file(request)) {
    names.push_back(request.path.filename().string());
  } else {
    for (std::string& name : list_files(request.path)) {
      if (!is_hidden(name) && has_ending(name, endings)) names.push_back(std::move(name));
    }
  }
  if (names.empty()) {
    throw std::runtime_error(fmt::format("{}: no file in it has a name that ends in {}",
                                         request.path.string(), fmt::join(endings, ", ")));
  }
  describe(names);
}

void ClassFolder::describe(const std::vector<std::string>& names) {
  const TaskOptions& o = request_.options;
  const std::string common = common_folder(names);
  std::vector<std::string> rest;
  for (const std::string& name : names) rest.push_back(name.substr(common.size()));
  const bool by_folder = o.label_pattern.empty() && o.target == TaskTarget::label;
  const bool splits =
      request_.labelled && request_.split == Split::any && are_splits(rest, by_folder);
  const Pattern label("task.label_pattern", o.label_pattern);
  const Pattern group("task.group_pattern", o.group_pattern);
  // With one class only, its folder is in front of everything.
  const std::string above(
      name_tail(std::string_view(common).substr(0, common.empty() ? 0 : common.size() - 1), 1));
  for (std::size_t i = 0; i < names.size(); ++i) {
    Record record;
    record.name = request_.split == Split::any
                      ? rest[i]
                      : fmt::format("{}/{}", split_name(request_.split), rest[i]);
    record.split = splits ? split_of_word(ascii_lower(first_folder(rest[i]))) : request_.split;
    if (request_.labelled) {
      std::string folder = first_folder(splits ? without_first(rest[i]) : rest[i]);
      if (folder.empty()) folder = above;
      set_target(record, file_label(request_.path, names[i]), folder, label);
      if (!o.group_pattern.empty()) {
        const auto found = group.capture(record.name);
        if (!found || found->empty()) {
          throw std::invalid_argument(fmt::format("task.group_pattern: \"{}\" is not found in {}",
                                                  o.group_pattern, record.name));
        }
        record.group = *found;
      }
    }
    records_.emplace(names[i], std::move(record));
  }
}

void ClassFolder::set_target(Record& record, const std::string& where, const std::string& folder,
                             const Pattern& label) const {
  const TaskOptions& o = request_.options;
  if (o.target == TaskTarget::forecast) return;
  std::string target = folder;
  if (!o.label_pattern.empty()) {
    const auto found = label.capture(record.name);
    if (!found || found->empty()) {
      throw std::invalid_argument(fmt::format("task.label_pattern: \"{}\" is not found in {}",
                                              o.label_pattern, record.name));
    }
    target = *found;
  }
  if (target.empty()) {
    throw std::runtime_error(where +
                             ": it is not in a folder of its class; move it into one, or extract "
                             "the class from its name with task.label_pattern");
  }
  if (o.target != TaskTarget::value) {
    record.label = target;
    return;
  }
  const auto value = to_float(target);
  if (!value) throw std::runtime_error(where + ": " + not_a_number_message(target));
  record.values = {*value};
}

void ClassFolder::visit(const std::function<void(Record record, const std::string& where,
                                                 std::string_view bytes)>& visit) const {
  visit_set(
      request_, [&](const std::string& name) { return records_.contains(name); },
      [&](const SetFile& file) { visit(records_.at(file.name), file.where, file.bytes); });
}

}  // namespace rotrnn
