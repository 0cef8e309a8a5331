# The runtime: trained models. Needs kernels/kernels.cmake before it.
#   rotrnn_runtime_objects   what reads and runs models; also part of rotrnn
#   rotrnn_runtime           librotrnn_runtime.so, the C and C++ interface, with kernels of its own;
#                            depends on the C and C++ runtime alone
#   rotrnn_runtime_static    the same as librotrnn_runtime.a
set(ROTRNN_RUNTIME_DIR ${CMAKE_CURRENT_LIST_DIR})
if(NOT EMSCRIPTEN)  # web/ brings their headers itself: /usr/include is not for WebAssembly
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
endif()

set(ROTRNN_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
configure_file(${ROTRNN_RUNTIME_DIR}/../version.h.in ${ROTRNN_GENERATED}/rotrnn/version.h @ONLY)

set(runtime_sources c_api.cpp c_status.cpp frontend.cpp model.cpp packed_model.cpp score.cpp stream.cpp wave.cpp ../spec/preprocess.cpp
    ../spec/read_model.cpp ../spec/write_model.cpp
    ../io/atomic_file.cpp ../io/mapped_file.cpp ../io/formats/safetensors.cpp ../base/text/utf8.cpp)
if(EMSCRIPTEN)
  list(REMOVE_ITEM runtime_sources ../io/atomic_file.cpp)  # nothing is written in a page
endif()
list(TRANSFORM runtime_sources PREPEND ${ROTRNN_RUNTIME_DIR}/)
add_library(rotrnn_runtime_objects OBJECT ${runtime_sources})
target_include_directories(rotrnn_runtime_objects PUBLIC ${ROTRNN_RUNTIME_DIR}/../.. ${ROTRNN_GENERATED})
target_compile_options(rotrnn_runtime_objects PRIVATE -ffunction-sections -fdata-sections)
target_compile_definitions(rotrnn_runtime_objects PRIVATE ROTRNN_SHARED)
# fmt as headers alone: no library to bring along.
target_link_libraries(rotrnn_runtime_objects PRIVATE fmt::fmt-header-only nlohmann_json::nlohmann_json)
set_target_properties(rotrnn_runtime_objects PROPERTIES
  POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(TARGET rotrnn_flags)
  target_link_libraries(rotrnn_runtime_objects PRIVATE rotrnn_flags)
endif()

if(EMSCRIPTEN)
  return()  # no shared libraries there
endif()
include(${ROTRNN_RUNTIME_DIR}/../fit/fit.cmake)
add_library(rotrnn_runtime SHARED $<TARGET_OBJECTS:rotrnn_runtime_objects>
            $<TARGET_OBJECTS:rotrnn_fit_objects>)
target_link_libraries(rotrnn_runtime PRIVATE rotrnn_kernels_std)
get_filename_component(ROTRNN_ROOT ${ROTRNN_RUNTIME_DIR}/../.. ABSOLUTE)
target_include_directories(rotrnn_runtime PUBLIC $<BUILD_INTERFACE:${ROTRNN_ROOT}>)
# Only what ROTRNN_API and ROTRNN_C_API mark: the standard library's templates stay inside.
target_link_options(rotrnn_runtime PRIVATE -Wl,--gc-sections -Wl,--no-undefined -Wl,--exclude-libs,ALL)
set_target_properties(rotrnn_runtime PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
  EXPORT_NAME runtime LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_library(rotrnn::runtime ALIAS rotrnn_runtime)  # as find_package(rotrnn) names it

# librotrnn_runtime.a: the same in one archive, for programs that bring nothing along.
add_library(rotrnn_runtime_static STATIC
  $<TARGET_OBJECTS:rotrnn_runtime_objects> $<TARGET_OBJECTS:rotrnn_fit_objects>
  $<TARGET_OBJECTS:rotrnn_kernels_objects>
  $<TARGET_OBJECTS:rotrnn_kernels_std>)
target_include_directories(rotrnn_runtime_static PUBLIC $<BUILD_INTERFACE:${ROTRNN_ROOT}>)
target_link_libraries(rotrnn_runtime_static INTERFACE -pthread m)
set_target_properties(rotrnn_runtime_static PROPERTIES OUTPUT_NAME rotrnn_runtime LINKER_LANGUAGE CXX
  EXPORT_NAME runtime_static ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
