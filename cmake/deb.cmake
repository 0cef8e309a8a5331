# cpack -G DEB: five packages (four without LibTorch), divided as Debian divides libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rotrnn)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # the first line of each description below
set(CPACK_PACKAGE_VENDOR "the rotrnn authors")
set(CPACK_PACKAGE_CONTACT "The rotrnn authors <rotrnn@example.org>" CACHE STRING
    "Maintainer of the packages: name <address>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program runtime runtime-dev dev)
if(TARGET rotrnn_c10d)
  list(APPEND CPACK_COMPONENTS_ALL c10d)
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/documents.cmake)
set(CPACK_ROTRNN_SOURCE ${PROJECT_SOURCE_DIR})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME rotrnn)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "linear recurrent networks for long sequences
Trains RotRNN, LRU, S5, S4D, S4 and Liquid-S4 on a CPU, compares them, exports
and streams what was trained, and shows it in the browser.

This package has the program, its configs and its documentation.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS rotrnn-c10d)

set(CPACK_DEBIAN_C10D_PACKAGE_NAME rotrnn-c10d)
set(CPACK_DEBIAN_C10D_PACKAGE_SECTION science)
set(CPACK_DEBIAN_C10D_PACKAGE_ENHANCES rotrnn)
set(CPACK_COMPONENT_C10D_DESCRIPTION "rotrnn with several processes and machines
Processes that train one network together talk through LibTorch's c10d with
Gloo. rotrnn loads this library when it is one of several.

This package has the library alone; LibTorch comes with it.")

set(runtime librotrnn-runtime0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# What packages of programs that link it will depend on.
file(WRITE ${PROJECT_BINARY_DIR}/package/shlibs
     "librotrnn_runtime 0 ${runtime} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/shlibs
    ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "trained recurrent networks in C and C++ programs
Loads a model that rotrnn exported and feeds it one sample at a time, in
constant memory, or whole sequences. Needs nothing else.

This package has the shared library.")

set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_RUNTIME-DEV_PACKAGE_NAME librotrnn-runtime-dev)
set(CPACK_DEBIAN_RUNTIME-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_RUNTIME-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_RUNTIME-DEV_PACKAGE_DEPENDS "${runtime} ${same}")
set(CPACK_COMPONENT_RUNTIME-DEV_DESCRIPTION "trained recurrent networks in C and C++ programs (headers)
Loads a model that rotrnn exported and feeds it one sample at a time, in
constant memory, or whole sequences. Needs nothing else.

This package has the headers and the files for CMake and pkg-config.")

# Of what package/rotrnn-dependencies.cmake.in looks for.
list(APPEND dev_depends "librotrnn-runtime-dev ${same}" libfmt-dev nlohmann-json3-dev
     libtomlplusplus-dev
     zlib1g-dev libarchive-dev libcurl4-openssl-dev libssl-dev libpng-dev libjpeg-dev
     libsndfile1-dev pkg-config)
list(JOIN dev_depends ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME librotrnn-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS libtorch-dev)  # rotrnn/torch/modules.h
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEV_DESCRIPTION "linear recurrent layers and their training
RotRNN, LRU, S5, S4D, S4 and Liquid-S4 on fused CPU kernels, whole networks of
them, their data and their training.

This package has the static libraries and their headers, among them one with
layers and networks as modules of LibTorch.")
include(CPack)
