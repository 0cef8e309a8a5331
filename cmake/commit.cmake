# cmake -DOUT=commit.h -DSOURCE=TREE [-DGIT=git] -P commit.cmake: the commit of the tree as a
# constant of the program, "unknown" in a tree that is no repository of its own.
set(commit "")
if(GIT)
  execute_process(COMMAND ${GIT} rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(top STREQUAL SOURCE)
    execute_process(COMMAND ${GIT} log -1 --abbrev=12 "--format=%h of %cs" WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(WRITE ${OUT} "// Made by cmake/commit.cmake.
#pragma once

namespace rotrnn::cli {

inline constexpr char kCommit[] = \"${commit}\";

}  // namespace rotrnn::cli
")
