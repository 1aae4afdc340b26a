#include "longhaul/testing/memory_growth.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul::testing {

#ifdef LONGHAUL_SANITIZED

std::optional<uint64_t> memory_growth(const std::function<void()>& /*work*/) {
  return std::nullopt;
}

#else

namespace {

uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

[[noreturn]] void measure(const std::function<void()>& work, int out) {
  const uint64_t before = peak_bytes();
  try {
    work();
  } catch (const std::exception&) {
  }
  const uint64_t growth = peak_bytes() - before;
  const bool written = write(out, &growth, sizeof growth) == sizeof growth;
  _exit(written ? 0 : 1);
}

}  // namespace

std::optional<uint64_t> memory_growth(const std::function<void()>& work) {
  malloc_trim(0);  // what was freed before would not be counted
  int ends[2];
  const AboveStdio above;
  if (pipe(ends) != 0) throw InternalError("cannot create a pipe for a child process");
  const pid_t child = fork();
  if (child < 0) throw InternalError("cannot create a child process");
  if (child == 0) measure(work, ends[1]);
  close(ends[1]);
  uint64_t growth = 0;
  const bool told = read(ends[0], &growth, sizeof growth) == sizeof growth;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!told) throw InternalError("the child process died");
  return growth;
}

#endif

}  // namespace longhaul::testing
