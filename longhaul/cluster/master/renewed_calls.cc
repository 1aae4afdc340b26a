#include "longhaul/cluster/master/renewed_calls.h"

#include "longhaul/base/error.h"

namespace longhaul {

size_t RenewedCalls::start(const std::string& task, const char* method, Message message, Seconds longest) {
  return calls_.start(tasks_.request_to(task, method, std::move(message)), tasks_.transport().clock().now() + longest);
}

CallGroup::Ended RenewedCalls::next() {
  constexpr Seconds kRenewal{60};  // for the calls that renew
  Clock& clock = tasks_.transport().clock();
  while (calls_.under_way() > 0) {
    taken_.renew_if_due({.deadline = clock.now() + kRenewal, .cancellation = &tasks_.cancellation()});
    auto ended =
        calls_.next({.deadline = clock.now() + TakenSnapshot::kLease / 3, .cancellation = &tasks_.cancellation()});
    tasks_.cancellation().check();
    if (!ended) continue;
    if (ended->reply.error != nullptr) std::rethrow_exception(ended->reply.error);
    return *std::move(ended);
  }
  throw InternalError("a snapshot's calls are waited for, but none is under way");
}

}  // namespace longhaul
