# rotrnn_add_kernels(TARGET THREADS openmp|std [XSMM]): the kernels as a static library, without
# LibTorch. The sources are compiled once, as position-independent code with hidden symbols, so that
# the same objects go into programs, the runtime library and the Python module; only the threads
# (and libxsmm) differ. Missing features are stub files, chosen here.
set(ROTRNN_KERNELS_DIR ${CMAKE_CURRENT_LIST_DIR})
set(kernel_sources activations adamw block_backward block_common block_forward block_gradients
    channel channel_step convolve dplr dense embedding expm fft gemm gemm_hwy linear norm plan pooling products rotrnn_map scan simd step threads
    targets/baseline targets/scalar)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND kernel_sources targets/avx2 targets/avx512)
  # Whole-file flags: Highway's static dispatch takes the target from the compiler's macros.
  set_source_files_properties(${ROTRNN_KERNELS_DIR}/targets/avx2.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx2;-mfma;-mf16c;-mbmi;-mbmi2;-maes;-mpclmul")
  set_source_files_properties(${ROTRNN_KERNELS_DIR}/targets/avx512.cpp PROPERTIES COMPILE_OPTIONS
    "-march=skylake-avx512;-maes;-mpclmul;-mprefer-vector-width=512")
else()
  list(APPEND kernel_sources targets/no_x86)
endif()
if(EMSCRIPTEN)  # pages do not train
  list(REMOVE_ITEM kernel_sources adamw block_backward block_gradients channel convolve dense dplr embedding
       expm fft linear products rotrnn_map)
endif()
list(TRANSFORM kernel_sources PREPEND ${ROTRNN_KERNELS_DIR}/)
list(TRANSFORM kernel_sources APPEND .cpp)

find_package(Threads REQUIRED)

# How every kernel is compiled.
function(rotrnn_compile_kernels target)
  target_compile_options(${target} PRIVATE -fno-math-errno)
  get_filename_component(root ${ROTRNN_KERNELS_DIR}/../.. ABSOLUTE)
  target_include_directories(${target} PUBLIC ${root})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${target} PRIVATE rotrnn_flags)
endfunction()

add_library(rotrnn_kernels_objects OBJECT ${kernel_sources})
rotrnn_compile_kernels(rotrnn_kernels_objects)

# libxsmm as a second tile GEMM, off by default: the Highway kernel measures faster. Never link
# libxsmmnoblas: its empty dgemm_ would take the place of LibTorch's, so libxsmm gets the real BLAS.
option(ROTRNN_XSMM "Build the libxsmm back end of the tile GEMM" OFF)

function(rotrnn_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 kernels "XSMM" "THREADS" "")
  if(kernels_XSMM AND ROTRNN_XSMM)
    find_library(XSMM xsmm REQUIRED)
    find_path(XSMM_INCLUDE libxsmm.h REQUIRED)
    find_package(BLAS REQUIRED)
    set(gemm xsmm)
  else()
    set(gemm no_xsmm)
  endif()
  set(threads std)
  if(kernels_THREADS STREQUAL "openmp" AND NOT ROTRNN_STD_THREADS)
    find_package(OpenMP)
    if(OpenMP_CXX_FOUND)
      set(threads openmp)
    endif()
  endif()
  add_library(${target} STATIC
    $<TARGET_OBJECTS:rotrnn_kernels_objects>
    ${ROTRNN_KERNELS_DIR}/gemm_${gemm}.cpp
    ${ROTRNN_KERNELS_DIR}/threads_${threads}.cpp)
  rotrnn_compile_kernels(${target})
  target_link_libraries(${target} PUBLIC Threads::Threads)
  if(threads STREQUAL "openmp")
    target_link_libraries(${target} PUBLIC OpenMP::OpenMP_CXX)
  endif()
  if(gemm STREQUAL "xsmm")
    target_link_libraries(${target} PUBLIC ${XSMM} BLAS::BLAS ${CMAKE_DL_LIBS})
  endif()
endfunction()
