#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Series and pictures as lines of text, for a look at data on a terminal.

namespace rotrnn {

/// A series as a curve of braille dots, 2 × 4 to a character: `rows` lines of `columns` characters,
/// the largest value on top. Where several values share a dot, all between the least and the
/// largest is drawn; what is not finite is left out. A series without spread is a line in the
/// middle.
std::vector<std::string> plot_series(std::span<const float> values, int64_t columns, int64_t rows);

/// A curve in one line of blocks of eight heights, ▁ to █, from the least value to the largest: as
/// many characters as there are values, at most `columns`, each the mean of its share of them.
/// Values that are not finite leave a blank. Values without spread are all at half height.
std::string sparkline(std::span<const double> values, int64_t columns);

/// Characters on the screen, for texts of characters that are one column wide.
int64_t columns_of(std::string_view text);

/// A grey picture in characters from ' ' (black) to '@' (white), two rows of pixels a line, since
/// characters are twice as high as wide. Pictures wider than `columns` are averaged down.
std::vector<std::string> plot_picture(std::span<const uint8_t> pixels, int64_t width,
                                      int64_t columns);

}  // namespace rotrnn
