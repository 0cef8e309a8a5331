#pragma once

#include <string>
#include <vector>

namespace rotrnn {

/// The classes that the names of files show.
struct NameGuess {
  std::string pattern;               // for task.label_pattern; empty: the names show none
  std::vector<std::string> classes;  // that it finds, sorted
  // Other parts of the names that many files share, such as speakers, with a pattern for them.
  std::string other_pattern;
  std::vector<std::string> others;
};

/// Looks at names without folders, such as "7_jackson_32.wav", "dog.12.png", "cat3.wav": the first
/// part that a few values share among all names is taken as the class. A last part that only counts
/// is none.
NameGuess guess_names(const std::vector<std::string>& names);

}  // namespace rotrnn
