#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// The pause before an attempt of a call whose line has broken: none before the first, 10 ms before the second, then
// twice as long each time, and never more than 1 s.
Seconds pause_before(int attempt);

// Calls to other tasks that are under way together. A call whose line breaks is repeated, to the same process, for a
// while, with pauses: the method must be one that may be repeated, as all but Watch may. A pause ends with the call: by
// its deadline, when it is given up, and when the transport stops. One thread uses a group; the transport must outlive
// the calls.
//
//   CallGroup calls(transport);
//   for (...) calls.start(request);
//   while (const auto ended = calls.next(limits)) ...
class CallGroup {
 public:
  static constexpr Seconds kTimeout{10};

  // A broken call is repeated for `timeout`, counted from its start; 0: it is not.
  // `ended` is notified of each call that ends, on a thread of the transport or inside start(), without a lock; it must
  // own what it touches, as it may be under way when the group is destroyed.
  explicit CallGroup(Transport& transport, Seconds timeout = kTimeout, std::function<void()> ended = {});
  ~CallGroup();  // gives up what is under way
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Returns the call's number, counted from 0. `deadline` is the call's, on the transport's clock; 0: none.
  size_t start(CallRequest request, Seconds deadline = Seconds{0});

  struct Ended {
    size_t call;
    CallReply reply;
  };
  // Waits for the next call that ends, in the order in which they do. nullopt: the limits are over, which ends no call,
  // or none is under way.
  std::optional<Ended> next(const WaitLimits& limits);

  size_t under_way() const;           // calls that next() has not returned
  bool has_ended(size_t call) const;  // next() has returned it
  void give_up(size_t call);
  // Leaves the calls under way to themselves: they are sent and repeated, and nobody looks at their replies. The group
  // is empty then.
  void leave();

 private:
  struct State;
  Transport& transport_;
  const Seconds timeout_;
  std::shared_ptr<State> state_;
  std::vector<bool> returned_;  // of each call
};

// Makes the calls, and waits until all were answered. Throws the first error; then the others are given up. `limits`
// bounds the wait, and its deadline is the calls'.
std::vector<Message> call_all(Transport& transport, std::vector<CallRequest> requests, const WaitLimits& limits);

}  // namespace longhaul
