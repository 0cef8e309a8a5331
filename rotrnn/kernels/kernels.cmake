# The library rotrnn_kernels: no LibTorch. Missing features are stub files, chosen here.
set(kernels ${CMAKE_CURRENT_LIST_DIR})
set(sources activations adamw block_backward block_common block_forward block_gradients embedding
    expm gemm gemm_hwy linear norm plan pooling rotrnn_map scan simd step threads)
list(TRANSFORM sources PREPEND ${kernels}/)
list(TRANSFORM sources APPEND .cpp)
list(APPEND sources ${kernels}/targets/baseline.cpp ${kernels}/targets/scalar.cpp)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND sources ${kernels}/targets/avx2.cpp ${kernels}/targets/avx512.cpp)
  # Whole-file flags: Highway's static dispatch takes the target from the compiler's macros.
  set_source_files_properties(${kernels}/targets/avx2.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx2;-mfma;-mf16c;-mbmi;-mbmi2;-maes;-mpclmul")
  set_source_files_properties(${kernels}/targets/avx512.cpp PROPERTIES COMPILE_OPTIONS
    "-march=skylake-avx512;-maes;-mpclmul;-mprefer-vector-width=512")
else()
  list(APPEND sources ${kernels}/targets/no_x86.cpp)
endif()

# libxsmm as a second tile GEMM, off by default: the Highway kernel measures faster. Never link
# libxsmmnoblas: its empty dgemm_ would take the place of LibTorch's, so libxsmm gets the real BLAS.
option(ROTRNN_XSMM "Build the libxsmm back end of the tile GEMM" OFF)
set(xsmm_libraries "")
if(ROTRNN_XSMM)
  find_library(XSMM xsmm REQUIRED)
  find_path(XSMM_INCLUDE libxsmm.h REQUIRED)
  find_package(BLAS REQUIRED)
  set(xsmm_libraries ${XSMM} BLAS::BLAS ${CMAKE_DL_LIBS})
  list(APPEND sources ${kernels}/gemm_xsmm.cpp)
else()
  list(APPEND sources ${kernels}/gemm_no_xsmm.cpp)
endif()

find_package(Threads REQUIRED)
find_package(OpenMP)
if(OpenMP_CXX_FOUND AND NOT ROTRNN_STD_THREADS)
  list(APPEND sources ${kernels}/threads_openmp.cpp)
  set(thread_library OpenMP::OpenMP_CXX)
else()
  list(APPEND sources ${kernels}/threads_std.cpp)
  set(thread_library Threads::Threads)
endif()

add_library(rotrnn_kernels STATIC ${sources})
target_compile_options(rotrnn_kernels PRIVATE -fno-math-errno)
target_include_directories(rotrnn_kernels PUBLIC ${kernels}/../..)
target_link_libraries(rotrnn_kernels PUBLIC ${thread_library} Threads::Threads ${xsmm_libraries})
