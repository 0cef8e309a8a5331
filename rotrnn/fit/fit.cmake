# Fitted models on arrays, as objects: a part of rotrnn, of the runtime libraries (with a C interface)
# and of the Python module. Included by runtime/runtime.cmake.
set(ROTRNN_FIT_DIR ${CMAKE_CURRENT_LIST_DIR})
set(fit_sources band_source.cpp c_api.cpp draw.cpp fit.cpp model.cpp ridge.cpp score.cpp source.cpp)
list(TRANSFORM fit_sources PREPEND ${ROTRNN_FIT_DIR}/)
add_library(rotrnn_fit_objects OBJECT ${fit_sources})
target_include_directories(rotrnn_fit_objects PUBLIC ${ROTRNN_FIT_DIR}/../.. ${ROTRNN_GENERATED})
target_compile_options(rotrnn_fit_objects PRIVATE -ffunction-sections -fdata-sections)
target_link_libraries(rotrnn_fit_objects PRIVATE fmt::fmt-header-only nlohmann_json::nlohmann_json)
set_target_properties(rotrnn_fit_objects PROPERTIES
  POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(TARGET rotrnn_flags)
  target_link_libraries(rotrnn_fit_objects PRIVATE rotrnn_flags)
endif()
