#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// While it lives, this thread waits for something that a report of all threads can name (stacks/thread_stacks.h), such
// as "elements of the queue" and its name. Of several in one thread the newest counts. It takes no lock but in the
// first wait of each thread, so it may be made under any; it costs two looks at the clock and is made where a wait
// begins, not before each look whether there is one.
//
//   const Waiting waiting("an element of the queue", name());
//   while (!has_element()) changed_.wait(mutex_);
class Waiting {
 public:
  // `what` is a literal; of `name`, which may be empty, the first kMostName bytes are kept.
  explicit Waiting(const char* what, std::string_view name = {});
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  static constexpr size_t kMostName = 64;
  struct Note {
    const char* what = nullptr;  // null: it does not wait
    Seconds since{0};            // on the machine's clock
    char name[kMostName] = {};   // filled up with zeros
  };

 private:
  Note before_;
};

// The waits of all threads at the moment, of which some may end meanwhile. Any thread.
struct WaitOfThread {
  int64_t thread = 0;  // its number in the kernel
  std::string what{};  // "an element of the queue fifo_queue"
  Seconds lasting{0};
};
std::vector<WaitOfThread> waits_of_threads();

}  // namespace longhaul
