// The first and only process of an emulated machine: runs /kernel_tests with its own arguments and
// says on the console how that ended.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

int main(int, char** arguments) {
  char target[] = "ROTRNN_SIMD=avx512";
  char* environment[] = {target, nullptr};
  const pid_t child = fork();
  if (child == 0) {
    execve("/kernel_tests", arguments, environment);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  std::printf("\nkernel_tests ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  std::fflush(stdout);
  for (;;) pause();  // the emulator is stopped from outside
}
