# What every target of ours is compiled with.
option(ROTRNN_WERROR "Treat warnings as errors" OFF)
add_library(rotrnn_flags INTERFACE)
target_compile_options(rotrnn_flags INTERFACE -Wall -Wextra
  $<$<COMPILE_LANGUAGE:CXX>:-Wswitch-enum> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual> $<$<BOOL:${ROTRNN_WERROR}>:-Werror>)
# GCC 12 warns of std::string's own copies, which cannot overlap (GCC bug 105651).
target_compile_options(rotrnn_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
target_include_directories(rotrnn_flags INTERFACE ${root})
