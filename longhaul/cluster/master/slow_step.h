#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/master/cluster_run.h"
#include "longhaul/cluster/transport/call_group.h"

namespace longhaul {

// Where a step is on its tasks, once it takes long: for the log, which tells of it after a minute and each time that it
// has taken twice as long, and for the error of a step whose deadline has come. The tasks are asked half a minute after
// its begin, and each time before something is told; a step that ends sooner sends nothing. One thread: the step's.
//
//   while (!answered) {
//     wait until slow.next();
//     slow.look();
//   }
class SlowStep {
 public:
  static constexpr Seconds kFirstLook{30};

  // `deadline`: the step's; 0: none. The tasks are asked halfway to it, too, and just before.
  SlowStep(std::shared_ptr<SessionTasks> tasks, std::shared_ptr<const ClusterRun> run, int64_t step, Seconds deadline);

  Seconds began() const { return began_; }
  Seconds next() const;  // when something is to be done
  void look();           // does what is due: asks, or tells the log; never waits

  // A line for each task, with its operation, device and time, as far as the answers have come: a task that has not
  // answered is named, too. Empty: none was asked.
  std::string report();

 private:
  struct Answer {
    std::optional<Seconds> asked{};  // and not answered yet: since when
    std::string text{};              // of the last answer; empty: none
  };

  void ask(Seconds now);
  void take_answers();
  std::string line(size_t part, Seconds now) const;

  const std::shared_ptr<SessionTasks> tasks_;
  const std::shared_ptr<const ClusterRun> run_;
  const int64_t step_;
  const Seconds began_;
  std::array<std::optional<Seconds>, 2> before_deadline_;  // looks to come
  Seconds next_doubling_;
  std::optional<Seconds> tell_;     // when the log is told
  std::optional<CallGroup> calls_;  // from the first look on
  std::vector<size_t> asked_;       // the part of each call
  std::vector<Answer> answers_;     // of each part; empty: none was asked
};

// What a task has answered, in words: "runs dense/MatMul (aten::mm) on /job:ps/replica:0/task:0/device:CPU:0, for 12 s
// at least; its part came 14 s ago". Nothing in it is trusted.
std::string place_text(const std::string& task, const proto::LookAtStepReply& reply);

}  // namespace longhaul
