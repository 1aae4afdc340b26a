#include "longhaul/placement/bundles.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

bool runs_what_may_wait(const PartStep& step) {
  return step.kind == PartStep::kRun && (step.op.traits() & (kMayWait | kWritesVariable)) != 0;
}

int64_t bytes_of(const Transfer& transfer) {
  if (!transfer.has_value() || transfer.value.dtype() == kString) return 0;
  const int64_t count = transfer.value.shape().num_elements();
  return count < 0 ? 0 : count * static_cast<int64_t>(dtype_size(transfer.value.dtype()));
}

class Bundler {
 public:
  explicit Bundler(RunSplit& split) : split_(split) {}

  void bundle() {
    number_bundles();
    for (auto& steps : split_.parts) drop_sends_without_value(steps);
    for (auto& steps : split_.parts) drop_receives_without_value(steps);
    for (auto& steps : split_.parts) number_slots(steps);
  }

 private:
  using Steps = std::vector<PartStep>;

  struct Open {
    int bundle;
    int64_t bytes = 0;
  };
  // How far the steps of a part have been looked at.
  struct Progress {
    size_t next = 0;
    std::map<int, Open> open{};  // by receiver
    std::unordered_set<int> arrived{};
  };

  Transfer& transfer_of(const PartStep& step) { return split_.transfers[static_cast<size_t>(step.transfer)]; }
  Bundle& bundle_of(const PartStep& step) { return split_.bundles[static_cast<size_t>(transfer_of(step).bundle)]; }

  // Each part as far as it gets before a value that was not sent yet: so it is known in which message a value comes.
  void number_bundles() {
    std::vector<Progress> parts(split_.parts.size());
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (size_t i = 0; i < parts.size(); ++i) {
        const size_t before = parts[i].next;
        advance(split_.parts[i], parts[i]);
        has_moved |= parts[i].next > before;
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].next < split_.parts[i].size())
        throw InternalError("the part of " + split_.tasks[i] + " waits for what is never sent");
    }
  }

  // Further values of a message that has come are no reason to wait.
  void advance(const Steps& steps, Progress& part) {
    for (; part.next < steps.size(); ++part.next) {
      const PartStep& step = steps[part.next];
      if (step.kind == PartStep::kReceive) {
        const int bundle = transfer_of(step).bundle;
        if (bundle < 0) return;
        if (part.arrived.insert(bundle).second) part.open.clear();
      } else if (step.kind == PartStep::kSend) {
        add(transfer_of(step), part.open);
      } else if (runs_what_may_wait(step)) {
        part.open.clear();
      }
    }
  }

  void add(Transfer& transfer, std::map<int, Open>& open) {
    const int64_t bytes = bytes_of(transfer);
    auto current = open.find(transfer.to);
    if (current != open.end() && current->second.bytes > 0 && current->second.bytes + bytes > kMostBundleBytes) {
      open.erase(current);
      current = open.end();
    }
    if (current == open.end()) {
      current = open.emplace(transfer.to, Open{static_cast<int>(split_.bundles.size())}).first;
      split_.bundles.push_back({.from = transfer.from, .to = transfer.to});
    }
    current->second.bytes += bytes;
    transfer.bundle = current->second.bundle;
    if (transfer.has_value()) ++split_.bundles[static_cast<size_t>(transfer.bundle)].values;
  }

  // From the end: the last send of a bundle stays where it is, though with the bundle's last value if there is one, and
  // so its message leaves after all that it stands for.
  void drop_sends_without_value(Steps& steps) {
    std::unordered_set<int> left;
    std::map<int, size_t> waiting;  // by bundle: the last send, which has no value
    std::vector<bool> dropped(steps.size());
    for (size_t i = steps.size(); i-- > 0;) {
      if (steps[i].kind != PartStep::kSend) continue;
      const Transfer& transfer = transfer_of(steps[i]);
      const auto last = waiting.find(transfer.bundle);
      if (last != waiting.end() && transfer.has_value()) {
        steps[last->second] = steps[i];
        waiting.erase(last);
        dropped[i] = true;
      } else if (!transfer.has_value()) {
        dropped[i] = !left.insert(transfer.bundle).second;
        if (!dropped[i] && bundle_of(steps[i]).values > 0) waiting.emplace(transfer.bundle, i);
      } else {
        left.insert(transfer.bundle);
      }
    }
    size_t i = 0;
    std::erase_if(steps, [&](const PartStep&) { return dropped[i++]; });
  }

  // Whoever waits for an operation waits for its bundle: takes the bundle's first value then, if none was taken before.
  void drop_receives_without_value(Steps& steps) {
    std::unordered_set<int> arrived, moved;
    Steps kept;
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      if (step->kind != PartStep::kReceive) {
        kept.push_back(*step);
        continue;
      }
      if (moved.contains(step->transfer)) continue;
      const Transfer& transfer = transfer_of(*step);
      const bool first = arrived.insert(transfer.bundle).second;
      if (transfer.has_value() || (first && bundle_of(*step).values == 0)) {
        kept.push_back(*step);
      } else if (first) {
        const auto value = std::find_if(step, steps.end(), [&](const PartStep& later) {
          return later.kind == PartStep::kReceive && transfer_of(later).bundle == transfer.bundle &&
                 transfer_of(later).has_value();
        });
        moved.insert(value->transfer);
        kept.push_back(*value);
      }
    }
    steps = std::move(kept);
  }

  void number_slots(const Steps& steps) {
    std::map<int, int> next;
    for (const PartStep& step : steps) {
      if (step.kind == PartStep::kSend && transfer_of(step).has_value())
        transfer_of(step).slot = next[transfer_of(step).bundle]++;
    }
  }

  RunSplit& split_;
};

}  // namespace

void bundle_transfers(RunSplit& split) {
  Bundler(split).bundle();
}

}  // namespace longhaul
