#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/base/text/text_place.h"

// .ts, the text format of the UCR and UEA archives of time series: lines with # are comments, then
// tags (@problemName, @classLabel true a b, ...), @data, and one series per line: values separated
// by
// ',', channels by ':', the label last.

namespace rotrnn {

/// What the tags say.
struct TsHeader {
  std::string problem;
  int64_t dimensions = 0;     // channels; 0: as many as the first series has
  int64_t length = 0;         // of every series; 0: any
  bool equal_length = false;  // as the first series, if `length` is 0
  bool labelled = false;      // @classLabel true
  bool targeted = false;      // @targetLabel true
  std::vector<std::string> classes;
};

/// One line of the data.
struct TsSeries {
  std::vector<float> values;  // [length, dimensions]
  int64_t length = 0;
  int64_t label = 0;  // number in TsHeader::classes
  float target = 0;   // with @targetLabel
};

/// The series of a file, one after the other. What cannot be read, missing values and time stamps
/// included, throws std::runtime_error `name:line: ...`.
class TsReader {
 public:
  /// Reads the tags. `content` and `name` must outlive the object. Without `labels`, what is
  /// written as the label or target of a series is not looked at.
  TsReader(std::string_view content, std::string_view name, bool labels = true);

  /// The dimensions are known from the first series on.
  const TsHeader& header() const { return header_; }

  /// Reads the next series; false at the end.
  bool next(TsSeries& series);

  /// The line read last.
  TextPlace place() const { return {name_, line_}; }

 private:
  bool next_line(std::string_view& line);
  void read_tag(std::string_view line);
  void read_target(std::string_view field, TsSeries& series) const;
  void read_channels(std::string_view line, TsSeries& series);
  void check_length(int64_t length);

  std::string_view content_;
  std::string_view name_;
  TsHeader header_;
  bool labels_;
  bool univariate_ = false;
  std::size_t at_ = 0;
  int64_t line_ = 0;
  std::vector<std::string> seen_;  // tags
  std::vector<float> channels_;    // of the line, one after the other
};

}  // namespace rotrnn
