# cmake --install: the program, the libraries with their headers, the CMake and pkg-config packages.
# Everything is found from where it lies, so a prefix can be moved.
#   program       rotrnn, configs, documentation
#   runtime       librotrnn_runtime.so.N
#   runtime-dev   its headers and examples, librotrnn_runtime.a, rotrnn::runtime, rotrnn::runtime_static
#   c10d          librotrnn_c10d.so, which the program loads when it is one of several processes
#   dev           librotrnn.a with all other headers and examples, rotrnn::rotrnn; the engine with
#                 the header for LibTorch, rotrnn::engine_std
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rotrnn)

install(TARGETS rotrnn_cli RUNTIME COMPONENT program)
if(TARGET rotrnn_c10d)
  # A LibTorch that the loader does not find by itself is found where it was at the build.
  set_target_properties(rotrnn_c10d PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS rotrnn_c10d LIBRARY COMPONENT c10d)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/rotrnn COMPONENT program)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program
        PATTERN "*.1" EXCLUDE)
install(FILES docs/rotrnn.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
# Examples go with the headers that they include.
install(FILES examples/stream.cpp examples/stream.c
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT runtime-dev)
install(FILES examples/layer.cpp examples/torch_layer.cpp examples/train.cpp
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT dev)

install(TARGETS rotrnn_runtime rotrnn_runtime_static EXPORT rotrnn-runtime
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT runtime-dev
        ARCHIVE COMPONENT runtime-dev
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES rotrnn/fit/c_api.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rotrnn/fit COMPONENT runtime-dev)
foreach(name c_api model score stream visibility)
  install(FILES rotrnn/runtime/${name}.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rotrnn/runtime COMPONENT runtime-dev)
endforeach()
install(FILES rotrnn/spec/kinds.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rotrnn/spec COMPONENT runtime-dev)
install(FILES ${PROJECT_BINARY_DIR}/rotrnn/generated/rotrnn/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rotrnn COMPONENT runtime-dev)

# The static libraries of the build as one archive: clients see one target, and its insides may
# change. What it needs is written down in package/rotrnn-dependencies.cmake.in.
add_library(rotrnn_archive STATIC
  $<TARGET_OBJECTS:rotrnn> $<TARGET_OBJECTS:rotrnn_engine_objects>
  $<TARGET_OBJECTS:rotrnn_runtime_objects> $<TARGET_OBJECTS:rotrnn_fit_objects>
  $<TARGET_OBJECTS:rotrnn_kernels> $<TARGET_OBJECTS:rotrnn_kernels_objects>)
set_target_properties(rotrnn_archive PROPERTIES OUTPUT_NAME rotrnn EXPORT_NAME rotrnn
  LINKER_LANGUAGE CXX ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_include_directories(rotrnn_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rotrnn_archive INTERFACE cxx_std_20)
install(TARGETS rotrnn_archive EXPORT rotrnn-rotrnn ARCHIVE COMPONENT dev)
foreach(folder base data distributed fit io kernels layers network plot spec training)
  install(DIRECTORY rotrnn/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rotrnn COMPONENT dev
          FILES_MATCHING PATTERN "*.h" PATTERN "targets" EXCLUDE
          REGEX "/fit/c_api\\.h$" EXCLUDE  # of the runtime
          REGEX "/spec/kinds\\.h$" EXCLUDE  # with the runtime
          # Inside the layers, with Eigen, which clients need not have.
          REGEX "/state_space/(hippo|dplr)\\.h$" EXCLUDE REGEX "/s4/system\\.h$" EXCLUDE)
endforeach()

# The engine for programs with a LibTorch, which compile the header.
target_include_directories(rotrnn_engine_std INTERFACE
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS rotrnn_engine_std EXPORT rotrnn-engine_std ARCHIVE COMPONENT dev)
install(FILES rotrnn/torch/modules.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rotrnn/torch COMPONENT dev)
install(EXPORT rotrnn-engine_std NAMESPACE rotrnn:: DESTINATION ${package_dir}
        FILE rotrnn-engine_std-targets.cmake COMPONENT dev)

# find_package(rotrnn COMPONENTS runtime rotrnn)
install(EXPORT rotrnn-runtime NAMESPACE rotrnn:: DESTINATION ${package_dir}
        FILE rotrnn-runtime-targets.cmake COMPONENT runtime-dev)
install(EXPORT rotrnn-rotrnn NAMESPACE rotrnn:: DESTINATION ${package_dir}
        FILE rotrnn-rotrnn-targets.cmake COMPONENT dev)
set(made ${CMAKE_CURRENT_BINARY_DIR}/package)
configure_package_config_file(cmake/package/rotrnn-config.cmake.in ${made}/rotrnn-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may break what was.
write_basic_package_version_file(${made}/rotrnn-config-version.cmake COMPATIBILITY SameMinorVersion)
get_target_property(links rotrnn_kernels LINK_LIBRARIES)
set(ROTRNN_NEEDS_OPENMP FALSE)
if("OpenMP::OpenMP_CXX" IN_LIST links)
  set(ROTRNN_NEEDS_OPENMP TRUE)
endif()
configure_file(cmake/package/rotrnn-dependencies.cmake.in ${made}/rotrnn-dependencies.cmake @ONLY)
install(FILES ${made}/rotrnn-config.cmake ${made}/rotrnn-config-version.cmake
        DESTINATION ${package_dir} COMPONENT runtime-dev)
install(FILES ${made}/rotrnn-dependencies.cmake DESTINATION ${package_dir} COMPONENT dev)

# pkg-config rotrnn-runtime.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH ROTRNN_PC_PREFIX /prefix/${pc_dir} /prefix)
string(REGEX REPLACE "/$" "" ROTRNN_PC_PREFIX ${ROTRNN_PC_PREFIX})
configure_file(cmake/package/rotrnn-runtime.pc.in ${made}/rotrnn-runtime.pc @ONLY)
install(FILES ${made}/rotrnn-runtime.pc DESTINATION ${pc_dir} COMPONENT runtime-dev)
