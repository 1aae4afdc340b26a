#pragma once

#include <memory>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/train/hooks/checkpoint_saver_hook.h"
#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {

// Counts what it is told.
class Counts : public CheckpointSaverListener {
 public:
  void begin() override { ++begins; }
  void before_save(Session&, int64_t) override { ++before; }
  bool after_save(Session&, int64_t step) override {
    ++after;
    return step >= stop_from;
  }
  void save_failed(Session&, int64_t) override { ++failed; }
  void end(Session&, int64_t) override { ++ends; }
  std::vector<int> all() const { return {begins, before, after, ends}; }

  int begins = 0, before = 0, after = 0, failed = 0, ends = 0;
  int64_t stop_from = 1000;
};

class CheckpointSaverTest : public HookTest {
 protected:
  CheckpointSaverHookOptions every(int64_t steps) {
    return {.checkpoint_dir = directory.path(),
            .save_steps = steps,
            .saver = saver,
            .summary_writer = writer,
            .clock = &clock};
  }
  // The step of the newest checkpoint; -1: there is none.
  int64_t saved() {
    const auto candidates = checkpoint_candidates(FileSystem::real(), directory.path(), "model.ckpt");
    return candidates.empty() ? -1 : split_step(candidates.front()).step.value();
  }
  // A step; the newest checkpoint after it.
  int64_t train_and_look(SessionRunHook& hook, int64_t by = 1) {
    train(hook, by);
    return saved();
  }
  const std::shared_ptr<Saver> saver = std::make_shared<Saver>(SaverOptions{.graph = &graph, .clock = &clock});
};

}  // namespace longhaul
