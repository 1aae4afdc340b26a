#pragma once

#include <map>
#include <string>
#include <vector>

#include "longhaul/cluster/exchange/step_exchange.h"
#include "longhaul/cluster/exchange/step_sender.h"
#include "longhaul/proto/cluster_service.pb.h"
#include "longhaul/session/part_exchange.h"

namespace longhaul {

// The messages of a part of a run, by their numbers.
struct PartBundles {
  std::map<int64_t, proto::Bundle> sent, received;
};

// What a part of a step exchanges with the parts on other tasks: collects the values of a message until the last one,
// and takes those of a message apart. What it is given outlives it. One thread at a time.
class PartMessages : public PartExchange {
 public:
  struct Step {
    int64_t step = 0;
    Seconds deadline{0};                             // on the exchange's clock; 0: none
    std::map<std::string, uint64_t> incarnations{};  // of the participants, by task
  };

  PartMessages(const PartBundles& bundles, Step step, StepExchange& exchange, StepSender& sender)
      : bundles_(bundles), step_(std::move(step)), exchange_(exchange), sender_(sender) {}

  // InternalError: the run has no such message or place in it, or the value was sent before. Waits while too much is
  // unanswered (StepSender); throws the first error of the step's deliveries.
  void send(int64_t bundle, int64_t slot, Tensor value) override;
  // `limits` gives the cancellation; the deadline is the step's. InternalError: the sender has sent something else.
  Tensor receive(int64_t bundle, int64_t slot, const WaitLimits& limits) override;

 private:
  struct Outgoing {
    std::vector<Tensor> values;
    size_t missing = 0;
  };

  void deliver(const proto::Bundle& bundle, std::vector<Tensor> values);
  std::vector<Tensor> awaited(const proto::Bundle& bundle, Cancellation* cancellation);
  std::vector<Tensor>& received(const proto::Bundle& bundle, const WaitLimits& limits);

  const PartBundles& bundles_;
  const Step step_;
  StepExchange& exchange_;
  StepSender& sender_;
  std::map<int64_t, Outgoing> outgoing_;
  std::map<int64_t, std::vector<Tensor>> received_;
};

}  // namespace longhaul
