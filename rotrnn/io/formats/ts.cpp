#include "rotrnn/io/formats/ts.h"

#include <fmt/format.h>

#include <algorithm>

#include "rotrnn/base/text/ascii.h"
#include "rotrnn/base/text/nearest.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/base/text/utf8.h"

namespace rotrnn {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (;;) {
    text = trimmed(text);
    if (text.empty()) return out;
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// Whether a tag says true or false.
bool flag(const TextPlace& place, const std::string& tag,
          const std::vector<std::string>& arguments) {
  const std::string word = arguments.empty() ? "" : ascii_lower(arguments[0]);
  if (word != "true" && word != "false") {
    place.fail(fmt::format("@{} is followed by {}; write true or false", tag,
                           arguments.empty() ? "nothing" : excerpt(arguments[0])));
  }
  return word == "true";
}

int64_t count(const TextPlace& place, const std::string& tag,
              const std::vector<std::string>& arguments) {
  constexpr double kMost = 1e9;
  const auto value = arguments.size() == 1 ? to_number(arguments[0]) : std::nullopt;
  if (!value || *value < 1 || *value > kMost ||
      *value != static_cast<double>(static_cast<int64_t>(*value))) {
    place.fail(fmt::format("@{} is followed by {}; write a number from 1", tag,
                           arguments.empty() ? "nothing" : excerpt(arguments[0])));
  }
  return static_cast<int64_t>(*value);
}

}  // namespace

TsReader::TsReader(std::string_view content, std::string_view name, bool labels)
    : content_(without_bom(content)), name_(name), labels_(labels) {
  const std::size_t bad = find_not_utf8(content_);
  if (bad != content_.npos) {
    const auto line =
        1 + std::count(content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    TextPlace{name_, line}.fail(not_utf8_message(content_, bad));
  }
  for (std::string_view line; next_line(line);) {
    if (line[0] != '@') {
      place().fail(fmt::format("{} before @data; a .ts file starts with tags such as @classLabel",
                               excerpt(line)));
    }
    read_tag(line);
    if (seen_.back() != "data") continue;
    if (header_.labelled && header_.targeted) {
      place().fail("@classLabel true and @targetLabel true; a series has one of the two");
    }
    if (univariate_ && header_.dimensions > 1) {
      place().fail(fmt::format("@univariate true and @dimensions {}; these contradict each other",
                               header_.dimensions));
    }
    if (univariate_) header_.dimensions = 1;
    return;
  }
  TextPlace{name_, std::max<int64_t>(line_, 1)}.fail("no @data in the file; is it complete?");
}

// Lines that say something, without blanks around them.
bool TsReader::next_line(std::string_view& line) {
  while (at_ < content_.size()) {
    const std::size_t end = std::min(content_.find('\n', at_), content_.size());
    line = trimmed(content_.substr(at_, end - at_));
    at_ = end + 1;
    ++line_;
    if (!line.empty() && line[0] != '#') return true;
  }
  return false;
}

void TsReader::read_tag(std::string_view line) {
  static const std::vector<std::string> kTags{
      "problemName", "timeStamps",   "missing",    "univariate",  "dimension", "dimensions",
      "equalLength", "seriesLength", "classLabel", "targetLabel", "data"};
  std::vector<std::string> arguments = words(line.substr(1));
  const std::string given = arguments.empty() ? "" : arguments[0], tag = ascii_lower(given);
  if (!arguments.empty()) arguments.erase(arguments.begin());
  if (std::find(seen_.begin(), seen_.end(), tag) != seen_.end()) {
    place().fail(fmt::format("@{} for the second time", given));
  }
  seen_.push_back(tag);
  if (tag == "problemname") {
    header_.problem = fmt::format("{}", fmt::join(arguments, " "));
  } else if (tag == "timestamps") {
    if (flag(place(), given, arguments)) {
      place().fail(
          "time stamps are not read; write the values alone, at equal steps of time, and "
          "@timeStamps false");
    }
  } else if (tag == "missing") {
    flag(place(), given, arguments);  // a missing value is found where it is missing
  } else if (tag == "univariate") {
    univariate_ = flag(place(), given, arguments);
  } else if (tag == "dimension" || tag == "dimensions") {
    header_.dimensions = count(place(), given, arguments);
  } else if (tag == "equallength") {
    header_.equal_length = flag(place(), given, arguments);
  } else if (tag == "serieslength") {
    header_.length = count(place(), given, arguments);
  } else if (tag == "classlabel") {
    header_.labelled = flag(place(), given, arguments);
    if (header_.labelled) header_.classes.assign(arguments.begin() + 1, arguments.end());
    if (header_.labelled && header_.classes.empty()) {
      place().fail("@classLabel true without the classes; write them after it");
    }
    for (std::size_t i = 1; i < header_.classes.size(); ++i) {
      const auto end = header_.classes.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(header_.classes.begin(), end, *end) != end) {
        place().fail(fmt::format("the class {} is there twice", excerpt(*end)));
      }
    }
  } else if (tag == "targetlabel") {
    header_.targeted = flag(place(), given, arguments);
  } else if (tag != "data") {
    const std::string near = nearest(given, kTags);
    place().fail(fmt::format("unknown tag {}{}", excerpt(line.substr(0, given.size() + 1)),
                             near.empty() ? "" : fmt::format("; did you mean \"@{}\"?", near)));
  }
}

bool TsReader::next(TsSeries& series) {
  std::string_view line;
  if (!next_line(line)) return false;
  if (line[0] == '@') place().fail(fmt::format("{} after @data", excerpt(line)));
  if (header_.labelled || header_.targeted) {
    const std::size_t colon = line.rfind(':');
    if (colon == line.npos) {
      place().fail("no ':' in the series; its label is written behind the last one");
    }
    if (labels_) read_target(trimmed(line.substr(colon + 1)), series);
    line = line.substr(0, colon);
  }
  read_channels(line, series);
  return true;
}

void TsReader::read_target(std::string_view field, TsSeries& series) const {
  if (header_.targeted) {
    const auto value = to_float(field);
    if (!value) place().fail("the target: " + not_a_number_message(field));
    series.target = *value;
    return;
  }
  const auto found = std::find(header_.classes.begin(), header_.classes.end(), field);
  if (found == header_.classes.end()) {
    place().fail(
        fmt::format("the label {} is none of those behind @classLabel true", excerpt(field)));
  }
  series.label = found - header_.classes.begin();
}

void TsReader::read_channels(std::string_view line, TsSeries& series) {
  channels_.clear();
  int64_t dimensions = 0, length = 0;
  for (bool more = true; more; ++dimensions) {
    const std::size_t colon = line.find(':');
    more = colon != line.npos;
    std::string_view channel = line.substr(0, colon);
    if (more) line.remove_prefix(colon + 1);
    const auto before = static_cast<int64_t>(channels_.size());
    for (bool next = true; next;) {
      const std::size_t comma = channel.find(',');
      next = comma != channel.npos;
      const std::string_view field = channel.substr(0, comma);
      if (next) channel.remove_prefix(comma + 1);
      const auto value = to_float(field);
      if (!value) {
        place().fail(fmt::format("value {} of channel {}: {}",
                                 static_cast<int64_t>(channels_.size()) - before + 1,
                                 dimensions + 1, not_a_number_message(field)));
      }
      channels_.push_back(*value);
    }
    const int64_t here = static_cast<int64_t>(channels_.size()) - before;
    if (dimensions == 0) length = here;
    if (here != length) {
      place().fail(
          fmt::format("channel {} has {} values, channel 1 has {}; the channels of a "
                      "series have one length",
                      dimensions + 1, here, length));
    }
  }
  if (header_.dimensions == 0) header_.dimensions = dimensions;
  if (dimensions != header_.dimensions) {
    place().fail(fmt::format("{} channels, expected {}", dimensions, header_.dimensions));
  }
  check_length(length);
  series.length = length;
  series.values.resize(channels_.size());
  for (int64_t d = 0; d < dimensions; ++d) {
    for (int64_t t = 0; t < length; ++t) {
      series.values[static_cast<std::size_t>(t * dimensions + d)] =
          channels_[static_cast<std::size_t>(d * length + t)];
    }
  }
}

void TsReader::check_length(int64_t length) {
  if (header_.length == 0 && header_.equal_length) header_.length = length;
  if (header_.length != 0 && length != header_.length) {
    place().fail(
        fmt::format("{} values per channel, expected {} as @seriesLength or the first "
                    "series says; write @equalLength false if lengths differ",
                    length, header_.length));
  }
}

}  // namespace rotrnn
