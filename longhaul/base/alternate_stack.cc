#include "longhaul/base/alternate_stack.h"

#include <signal.h>
#include <sys/mman.h>

#include <cstddef>

namespace longhaul {
namespace {

// Enough for a handler of the program that writes down where it was; memory is taken when it is used.
constexpr size_t kBytes = 256 * 1024;

class AlternateStack {
 public:
  AlternateStack() {
    stack_t before{};
    if (sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = memory;
    const stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = kBytes};
    sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    if (memory_ == nullptr) return;
    stack_t now{};
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory_) {
      const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
      sigaltstack(&none, nullptr);
    }
    munmap(memory_, kBytes);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = nullptr;
};

}  // namespace

void use_alternate_stack() {
  static thread_local const AlternateStack stack;
}

}  // namespace longhaul
