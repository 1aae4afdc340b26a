#pragma once

#include <cstdint>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// The calls of a thread, innermost first: addresses within the functions' code.
struct RawStack {
  enum class Answer {
    kHere,      // it is there
    kNoAnswer,  // the thread did not run its handler in time: it is in the kernel, uninterruptibly
    kBlocked,   // the thread blocks this signal, and was not sent it
    kGone,      // it has ended
    kNoSignal   // the program has handlers for all real-time signals
  };
  Answer answer = Answer::kGone;
  std::vector<uintptr_t> addresses{};
};

// Has another thread of this process say where it is: by a real-time signal that nobody else has a handler for, whose
// handler takes the stack (libgcc's unwinder), and does nothing else: no memory, no locks, and what a system call was
// doing continues (SA_RESTART), except in those few that always end by a signal (EINTR), such as poll(), nanosleep(),
// and calls of a socket with a time limit.
//
// The handler stays: a signal that a thread gets late, after it has left the kernel, must find one. Any thread may
// call, one after the other.
RawStack stack_of_thread(int64_t thread, Seconds limit);

// The signal; 0: none is free. The first call installs its handler.
int stack_signal();

}  // namespace longhaul
