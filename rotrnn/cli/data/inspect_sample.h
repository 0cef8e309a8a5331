#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/data/records.h"
#include "rotrnn/io/formats/image.h"
#include "rotrnn/spec/preprocess.h"

namespace rotrnn::cli {

/// How the examples of a set are shown.
enum class Look { text, words, series, picture };

/// Pictures are bytes in units of white with a whole number of rows; `width` 0 is the side of a
/// square.
Look look_of(const Records& records, const Preprocessing& preprocessing, int64_t width);

/// The text of a sequence of text or words, with its middle left out where it is longer than
/// `limit` characters, in one line.
std::string excerpt_of(const Records& records, const Preprocessing& preprocessing, int64_t sequence,
                       int64_t limit);

/// The lines that show a sequence on a terminal.
std::vector<std::string> lines_of(const Records& records, const Preprocessing& preprocessing,
                                  Look look, int64_t sequence, int64_t width);

/// The sequence as a picture.
Image picture_of(const Records& records, int64_t sequence, int64_t width);

}  // namespace rotrnn::cli
