# rotrnn_engine_std: the engine on threads of the standard library, for programs with a LibTorch
# (modules.h) or other threads of their own: a second OpenMP runtime in one process fights with the
# first. Of data, files and downloads it has nothing, and it is one archive as rotrnn_archive is.
add_library(rotrnn_engine_std STATIC
  $<TARGET_OBJECTS:rotrnn_engine_objects>
  $<TARGET_OBJECTS:rotrnn_kernels_objects> $<TARGET_OBJECTS:rotrnn_kernels_std>)
add_library(rotrnn::engine_std ALIAS rotrnn_engine_std)  # as find_package(rotrnn) names it
set_target_properties(rotrnn_engine_std PROPERTIES
  LINKER_LANGUAGE CXX EXPORT_NAME engine_std ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_compile_features(rotrnn_engine_std INTERFACE cxx_std_20)
target_include_directories(rotrnn_engine_std INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_link_libraries(rotrnn_engine_std INTERFACE fmt::fmt Threads::Threads)

# rotrnn_link_torch(TARGET): a test or example with modules.h, where LibTorch is.
function(rotrnn_link_torch target)
  find_package(Torch REQUIRED)
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(${target} PRIVATE ${flags})
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE rotrnn_flags rotrnn_engine_std ${TORCH_LIBRARIES})
endfunction()
