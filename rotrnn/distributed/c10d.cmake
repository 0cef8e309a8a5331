# rotrnn_c10d: librotrnn_c10d.so, which has LibTorch's c10d with Gloo behind a table in C
# (c10d_table.h). The program loads it when it is one of several processes and links nothing of it,
# so it may be built later, elsewhere or not at all. Made where LibTorch with c10d and Gloo's headers
# are found.
find_package(Torch QUIET)
find_path(GLOO_INCLUDE gloo/context.h)
find_path(C10D_INCLUDE torch/csrc/distributed/c10d/ProcessGroupGloo.hpp
          HINTS ${TORCH_INCLUDE_DIRS})
if(NOT Torch_FOUND OR NOT GLOO_INCLUDE OR NOT C10D_INCLUDE)
  message(STATUS "rotrnn: no librotrnn_c10d.so: LibTorch with c10d or the headers of Gloo are missing")
  return()
endif()

add_library(rotrnn_c10d SHARED distributed/c10d.cpp)
target_include_directories(rotrnn_c10d SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
if(NOT GLOO_INCLUDE IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
  target_include_directories(rotrnn_c10d SYSTEM PRIVATE ${GLOO_INCLUDE})
endif()
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(rotrnn_c10d PRIVATE ${torch_flags})
target_compile_definitions(rotrnn_c10d PRIVATE USE_C10D_GLOO)
target_link_libraries(rotrnn_c10d PRIVATE rotrnn_flags ${TORCH_LIBRARIES})
target_link_options(rotrnn_c10d PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
# Of ours one function is exported. No version in the name of the file: the table has one.
set_target_properties(rotrnn_c10d PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
