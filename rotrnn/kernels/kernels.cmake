# rotrnn_add_kernels(TARGET THREADS openmp|std): the kernels as a static library. The sources are
# compiled once, as position-independent code with hidden symbols, so that the same objects go into
# programs, the runtime library and the Python module; only the threads differ.
set(ROTRNN_KERNELS_DIR ${CMAKE_CURRENT_LIST_DIR})
set(kernel_sources
  ../base/threads ../spec/frontend
  block/activations block/block_backward block/block_common block/block_forward
  block/block_gradients block/embedding block/linear block/norm block/plan block/pooling block/step
  features/bank features/feature_bank
  frontend/patch frontend/rotations
  gemm/cholesky gemm/dense gemm/double_outer gemm/gemm gemm/gram
  maps/expm maps/rotrnn_map
  optimiser/adamw
  recurrence/channel recurrence/channel_step recurrence/convolve recurrence/dplr recurrence/fft
  recurrence/products recurrence/scan
  simd/simd simd/targets/baseline simd/targets/scalar)

option(ROTRNN_BASELINE_ONLY "Leave out the kernels for AVX2 and AVX-512, which take minutes to compile" OFF)
mark_as_advanced(ROTRNN_BASELINE_ONLY)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT ROTRNN_BASELINE_ONLY)
  list(APPEND kernel_sources simd/targets/avx2 simd/targets/avx512)
  # Whole-file flags: Highway's static dispatch takes the target from the compiler's macros.
  set_source_files_properties(${ROTRNN_KERNELS_DIR}/simd/targets/avx2.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx2;-mfma;-mf16c;-mbmi;-mbmi2;-maes;-mpclmul")
  set_source_files_properties(${ROTRNN_KERNELS_DIR}/simd/targets/avx512.cpp PROPERTIES COMPILE_OPTIONS
    "-march=skylake-avx512;-maes;-mpclmul;-mprefer-vector-width=512")
else()
  list(APPEND kernel_sources simd/targets/baseline_only)
endif()
if(EMSCRIPTEN)  # pages do not train
  list(REMOVE_ITEM kernel_sources block/block_backward block/block_gradients block/embedding
       block/linear gemm/cholesky gemm/dense gemm/double_outer gemm/gram maps/expm maps/rotrnn_map optimiser/adamw recurrence/channel
       recurrence/convolve recurrence/dplr recurrence/fft recurrence/products)
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

function(rotrnn_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 kernels "" "THREADS" "")
  set(threads std)
  if(kernels_THREADS STREQUAL "openmp" AND NOT ROTRNN_STD_THREADS)
    find_package(OpenMP)
    if(OpenMP_CXX_FOUND)
      set(threads openmp)
    endif()
  endif()
  add_library(${target} STATIC
    $<TARGET_OBJECTS:rotrnn_kernels_objects>
    ${ROTRNN_KERNELS_DIR}/../base/threads_${threads}.cpp)
  rotrnn_compile_kernels(${target})
  target_link_libraries(${target} PUBLIC Threads::Threads)
  if(threads STREQUAL "openmp")
    target_link_libraries(${target} PUBLIC OpenMP::OpenMP_CXX)
  endif()
endfunction()
