#include "longhaul/graph/graph_def/lent_functions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <random>

#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

class LentFunctions {
 public:
  // Graphs may go at the very end of the program, so this stays.
  static LentFunctions& get() {
    static auto* all = new LentFunctions;
    return *all;
  }

  std::string lend(const std::shared_ptr<HostFunction>& function) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase_if(functions_, [](const auto& lent) { return lent.second.expired(); });
    for (const auto& [ticket, lent] : functions_) {
      if (!lent.owner_before(function) && !function.owner_before(lent)) return ticket;
    }
    return functions_.emplace(fmt::format("{}{}", process(), ++last_), function).first->first;
  }

  std::shared_ptr<HostFunction> find(std::string_view ticket) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!ticket.starts_with(process())) return nullptr;
    const auto found = functions_.find(ticket);
    return found == functions_.end() ? nullptr : found->second.lock();
  }

 private:
  // With bits that no other task can guess. A forked child has another one: its functions may have the same numbers.
  std::string process() const { return fmt::format("{:016x}{:016x}.{}.", secret_[0], secret_[1], ::getpid()); }

  static uint64_t draw() {
    std::random_device bits;
    return (uint64_t{bits()} << 32) | bits();
  }

  const uint64_t secret_[2] = {draw(), draw()};
  Mutex mutex_;
  uint64_t last_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::weak_ptr<HostFunction>, std::less<>> functions_ GUARDED_BY(mutex_);
};

}  // namespace

std::string lend_function(const std::shared_ptr<HostFunction>& function) {
  return LentFunctions::get().lend(function);
}

std::shared_ptr<HostFunction> find_lent_function(std::string_view ticket) {
  return LentFunctions::get().find(ticket);
}

}  // namespace longhaul
