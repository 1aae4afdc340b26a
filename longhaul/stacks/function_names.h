#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace longhaul {

// Names of functions and lines of sources, by addresses in this process: from the symbol tables and the debugging
// information in the program and its libraries themselves (libdw). Nothing is looked for elsewhere, let alone in the
// network. One thread.
class FunctionNames {
 public:
  FunctionNames();
  ~FunctionNames();
  FunctionNames(const FunctionNames&) = delete;
  FunctionNames& operator=(const FunctionNames&) = delete;

  // "longhaul::Queue::dequeue(...) (queue.cc:140)", "pthread_cond_wait (libc.so.6)", "libfoo.so+0x7f12".
  std::string name_of(uintptr_t address);

 private:
  struct Modules;
  const std::unique_ptr<Modules> modules_;
};

}  // namespace longhaul
