# Compile through ccache when it is installed. The sloppiness lets it cache files that use the
# precompiled header, which it must otherwise refuse because the header holds a time stamp.
find_program(ROTRNN_CCACHE ccache)
if(ROTRNN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${ROTRNN_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
