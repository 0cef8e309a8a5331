# A module with a sanitizer in it cannot be loaded into an interpreter without.
if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
  return()
endif()

add_test(NAME python COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run.py)
set_tests_properties(python PROPERTIES
  ENVIRONMENT "PYTHONPATH=${ROTRNN_PYTHON_OUTPUT};PYTHONDONTWRITEBYTECODE=1;OMP_WAIT_POLICY=passive"
  SKIP_RETURN_CODE 77 TIMEOUT 600)

add_test(NAME example.python_layer
         COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run_example.py
                 ${PROJECT_SOURCE_DIR}/examples/python_layer.py)
set_tests_properties(example.python_layer PROPERTIES
  ENVIRONMENT "PYTHONPATH=${ROTRNN_PYTHON_OUTPUT};PYTHONDONTWRITEBYTECODE=1;OMP_WAIT_POLICY=passive"
  SKIP_RETURN_CODE 77 TIMEOUT 600)

# pip in an environment of its own. With the flags of this build, so that ccache has the objects.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME python.pip
           COMMAND ${Python_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/pip_check.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(python.pip PROPERTIES
    ENVIRONMENT "CMAKE_ARGS=-DROTRNN_WERROR=${ROTRNN_WERROR}" SKIP_RETURN_CODE 77 TIMEOUT 1200)
endif()
