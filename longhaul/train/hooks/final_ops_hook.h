#pragma once

#include <vector>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Runs operations once training has ended well, and keeps their values. end() throws what that run throws:
// OutOfRangeError, with a warning, if they take input that has ended.
class FinalOpsHook : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Fetch> final_ops, Feeds final_ops_feed_dict = {})
      : final_ops_(std::move(final_ops)), feeds_(std::move(final_ops_feed_dict)) {}

  // One value for each of final_ops, of an operation an undefined Tensor; empty before the end.
  const std::vector<Tensor>& final_ops_values() const { return values_; }

  void end(Session& session) override;

 private:
  const std::vector<Fetch> final_ops_;
  const Feeds feeds_;
  std::vector<Tensor> values_;
};

}  // namespace longhaul
