# A module with a sanitizer in it cannot be loaded into an interpreter without.
if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
  return()
endif()

add_test(NAME python COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run.py)
set_tests_properties(python PROPERTIES
  ENVIRONMENT "PYTHONPATH=${ROTRNN_PYTHON_OUTPUT};PYTHONDONTWRITEBYTECODE=1;OMP_WAIT_POLICY=passive"
  SKIP_RETURN_CODE 77 TIMEOUT 600)
