#pragma once

#include <string>
#include <vector>

#include "rotrnn/board/api.h"
#include "rotrnn/board/pictures.h"

namespace rotrnn::board {

/// Runs as one file to keep or send, and every chart of them as a picture.
struct Report {
  std::string html;
  std::vector<Picture> pictures;
  size_t runs = 0;
};

/// All runs and comparisons that the Api finds; std::runtime_error when there are none. `written`
/// is a date as it is to be shown.
Report make_report(Api& api, const std::string& title, const std::string& written);

}  // namespace rotrnn::board
