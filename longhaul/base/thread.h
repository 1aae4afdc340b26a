#pragma once

#include <functional>
#include <string>
#include <thread>

namespace longhaul {

// A thread with a name that debuggers and `top -H` show (its first 15 characters). Join it before it is destroyed, or
// detach it if its owner has given up on it; otherwise the destructor joins it. `body` must not throw.
class NamedThread {
 public:
  NamedThread() = default;
  NamedThread(std::string name, std::function<void()> body);
  NamedThread(NamedThread&&) = default;
  NamedThread& operator=(NamedThread&&) = default;
  ~NamedThread();

  const std::string& name() const { return name_; }
  bool joinable() const { return thread_.joinable(); }
  bool is_current() const { return thread_.get_id() == std::this_thread::get_id(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }
  // In place of both, in a forked child, where it does not run: its number may be that of a thread of the child's own.
  void leave_to_parent();

  // How many of them have been started and have not ended, with those that were detached. Whoever sees one fewer comes
  // after all that the thread did and destroyed.
  static int running();

 private:
  std::string name_;
  std::thread thread_;
};

}  // namespace longhaul
