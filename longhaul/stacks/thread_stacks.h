#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/stacks/stack_signal.h"

namespace longhaul {

// A thread of this process, as a report shows it.
struct ThreadStack {
  int64_t thread = 0;       // its number in the kernel: the one of /proc, gdb and `top -H`
  std::string name{};       // its first 15 bytes
  char state = '?';         // R: it runs, S: it sleeps, D: it is in the kernel, uninterruptibly; as in proc(5)
  std::string in_kernel{};  // the function of the kernel that it sleeps in; empty: not told
  std::string waits_for{};  // what it waits for, if the wait is one of the library (base/waiting.h); else empty
  Seconds waiting{0};       // and how long already
  RawStack stack{};
};

struct StackLimits {
  Seconds all{5};         // for all threads together
  Seconds each{0.2};      // for one
  size_t threads = 512;   // are asked; the others are counted
  size_t bytes = 60'000;  // of the text, before one more stack
};

struct ThreadStacks {
  std::vector<ThreadStack> threads{};  // but the caller's own; by their numbers, so that the program's first is first
  size_t others = 0;                   // threads that were not asked, since there are many or the time was over
};

// Where the threads of this process are. One that blocks signals, ends meanwhile, or does not run, is in the result
// without a stack. Any thread.
ThreadStacks stacks_of_threads(const StackLimits& limits = {});

// As a text for people, with a line for each thread and each call; threads with the same stack are told together:
//
//   thread 4711 train, sleeps, waits for an element of the queue fifo_queue since 611 s:
//     pthread_cond_wait (libc.so.6)
//     longhaul::Queue::await(...) (queue.cc:140)
//     main (train.cc:31)
std::string describe(const ThreadStacks& stacks, const StackLimits& limits = {});

}  // namespace longhaul
