#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "longhaul/console/checkpoints/checkpoint_fixture.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/io/process/process_identity.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul::console {

// A directory of a training, with a journal and an owner record as a chief would leave them.
class TrainingTest : public CheckpointsTest {
 protected:
  using Kind = RunEvent::Kind;

  void tell(Kind kind, double time, std::optional<int64_t> step = std::nullopt, const std::string& text = "") {
    journal_ += format_run_event({.kind = kind, .time = time, .step = step, .text = text});
    std::ofstream(journal_path(directory_.path())) << journal_;  // without a sync: there are thousands
  }
  void begin(double time) { tell(Kind::kBegan, time, std::nullopt, "process 7 started 1 boot b host train-3"); }
  // Begins at a step, and tells every five seconds where it is.
  void train(double from, double to, int64_t step, int64_t per_sec) {
    begin(from);
    tell(Kind::kRestored, from + 1, step, "model.ckpt-" + std::to_string(step));
    tell(Kind::kTraining, from + 2, step);
    for (double time = from + 5; time <= to; time += 5) {
      tell(Kind::kMark, time, step + static_cast<int64_t>((time - from) * static_cast<double>(per_sec)));
    }
  }
  void own(const ProcessIdentity& process, double now) {
    OwnerRecord owner{.token = std::string(32, 'a'), .process = process, .since = now - 100, .heartbeat = now};
    write_owner(files_, directory_.path(), owner);
  }
  static ProcessIdentity dead_process() {
    ProcessIdentity process = this_process();
    process.start_time -= 1;
    return process;
  }
  static ProcessIdentity process_elsewhere() {
    return {.host = "far-away", .boot_id = "another", .pid_namespace = "pid:[1]", .pid = 42, .start_time = 7};
  }

  std::string journal_ = "longhaul run journal 1\n";
};

}  // namespace longhaul::console
