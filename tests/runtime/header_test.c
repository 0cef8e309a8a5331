/* The header alone, as a program in C99 sees it: tests/CMakeLists.txt compiles this with -pedantic.
 */
#include "rotrnn/runtime/c_api.h"

int main(void) {
  rotrnn_model* model = NULL;
  return rotrnn_model_load(NULL, &model) == ROTRNN_BAD_ARGUMENT && rotrnn_last_error()[0] ? 0 : 1;
}
