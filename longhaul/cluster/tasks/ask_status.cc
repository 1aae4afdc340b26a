#include "longhaul/cluster/tasks/ask_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/pause.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {
namespace {

constexpr Seconds kLogEvery{10};
constexpr Seconds kLeastPause{0.2};  // between two questions to a task that refuses connections

std::vector<DeviceAttributes> devices_in(const proto::GetStatusReply& reply) {
  std::vector<DeviceAttributes> devices;
  for (const proto::DeviceAttributes& device : reply.devices()) {
    devices.push_back({.name = device.name(),
                       .device_type = device.device_type(),
                       .memory_limit = device.memory_limit(),
                       .incarnation = device.incarnation(),
                       .physical_device_desc = device.physical_device_desc()});
  }
  return devices;
}

// The questions of one ask_status().
class StatusQuestions {
 public:
  StatusQuestions(Transport& transport, const std::vector<std::string>& tasks, Seconds max_wait,
                  const WaitLimits& limits)
      : transport_(transport), clock_(transport.clock()), limits_(limits), end_(clock_.now() + max_wait) {
    for (const std::string& task : tasks) open_.emplace(task, clock_.now());
  }

  enum class Silent { kError, kLeftOut };

  std::map<std::string, TaskStatus> ask(Silent silent) {
    while (!open_.empty()) {
      ask_who_is_due();
      const WaitLimits limits{.deadline = next_event(), .cancellation = limits_.cancellation};
      if (auto ended = calls_.next(limits)) {
        take(asked_[ended->call], std::move(ended->reply));
        continue;
      }
      if (calls_.under_way() == 0) pause(clock_, limits.deadline, limits.cancellation);
      if (silent == Silent::kLeftOut && clock_.now() >= end_) break;
      check_limits();
      log_who_is_waited_for();
    }
    return std::move(answers_);
  }

 private:
  void ask_who_is_due() {
    for (auto& [task, again] : open_) {
      if (!again || clock_.now() < *again) continue;
      again.reset();
      asked_.push_back(task);
      calls_.start({.task = task, .method = methods::kGetStatus, .message = to_message(proto::GetStatusRequest())});
    }
  }

  Seconds next_event() const {
    Seconds next = std::min(end_, began_ + (logged_ + 1) * kLogEvery);
    if (limits_.deadline.count() != 0) next = std::min(next, limits_.deadline);
    for (const auto& [task, again] : open_) next = again ? std::min(next, *again) : next;
    return next;
  }

  void take(const std::string& task, const CallReply& reply) {
    if (reply.error == nullptr) {
      const auto status = header_of<proto::GetStatusReply>(reply.message, "GetStatus");
      answers_[task] = {.incarnation = reply.incarnation,
                        .devices = devices_in(status),
                        .task = status.task(),
                        .cluster = status.cluster(),
                        .session_config = status.default_session_config()};
      open_.erase(task);
      return;
    }
    const bool is_away = code_of(reply.error) == Code::kUnavailable && (reply.is_broken || reply.incarnation != 0);
    const bool is_starting = code_of(reply.error) == Code::kUnimplemented;  // it serves nothing yet
    if (!is_away && !is_starting) std::rethrow_exception(reply.error);
    open_[task] = clock_.now() + kLeastPause;
  }

  void check_limits() {
    if (limits_.cancellation != nullptr) limits_.cancellation->check();
    const Seconds now = clock_.now();
    const std::string& task = open_.begin()->first;
    if (limits_.deadline.count() != 0 && now >= limits_.deadline)
      throw DeadlineExceededError(
          unanswered_text(task, transport_.address_of(task), methods::kGetStatus, now - began_));
    if (now < end_) return;
    throw UnavailableError(fmt::format("{} has not answered for {:.3g} s: start it, or name no device of it",
                                       task_text(task, transport_.address_of(task)), (now - began_).count()));
  }

  void log_who_is_waited_for() {
    if (clock_.now() < began_ + (logged_ + 1) * kLogEvery) return;
    ++logged_;
    for (const auto& [task, again] : open_)
      log_warning("CreateSession still waiting for response from worker: {}{}", task, place_of(task));
  }

  std::string place_of(const std::string& task) const {
    if (task == transport_.task()) return ", which is this process: its server was not started (Server::start)";
    const std::string address = transport_.address_of(task);
    return address.empty() || address == task ? "" : " (" + address + ")";
  }

  Transport& transport_;
  Clock& clock_;
  const WaitLimits limits_;
  const Seconds began_ = clock_.now();
  const Seconds end_;
  int logged_ = 0;                                      // how many times
  std::map<std::string, std::optional<Seconds>> open_;  // who has not answered, and when to ask; nullopt: was asked
  std::vector<std::string> asked_;                      // by call
  std::map<std::string, TaskStatus> answers_;
  CallGroup calls_{transport_, Seconds{0}};
};

}  // namespace

std::map<std::string, TaskStatus> ask_status(Transport& transport, const std::vector<std::string>& tasks,
                                             Seconds max_wait, const WaitLimits& limits) {
  return StatusQuestions(transport, tasks, max_wait, limits).ask(StatusQuestions::Silent::kError);
}

std::map<std::string, TaskStatus> status_of_those_there(Transport& transport, const std::vector<std::string>& tasks,
                                                        Seconds most, const WaitLimits& limits) {
  return StatusQuestions(transport, tasks, most, limits).ask(StatusQuestions::Silent::kLeftOut);
}

}  // namespace longhaul
