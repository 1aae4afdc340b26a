#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/power_cut_file_system.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/sessions/session_manager.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

inline const std::string kRun = "/disk/run";

// One process of a training, on files that may be a dying machine's: it locks its directory, keeps its journal, and
// restores the newest whole checkpoint. At each step all variables have values that follow from the step.
class DoomedTraining {
 public:
  DoomedTraining(FileSystem& files, bool is_sharded);

  // The step of the checkpoint that it went on from; nullopt: there was none.
  std::optional<int64_t> restored() const { return restored_; }
  bool has_values_of(int64_t step);
  void go_to(int64_t step);
  void save(const SaveOptions& options = {});
  void save_at(int64_t step);
  // As a training without steps in its checkpoints' names does: each one replaces the one before.
  void save_in_place() { saver_.save(*session_, kRun + "/model"); }

  Saver& saver() { return saver_; }
  RunHistory history() const { return journal_.history(); }

 private:
  SaverOptions saver_options(bool is_sharded);
  static Tensor values_of(int64_t step, const Variable& variable);
  void start();

  FileSystem& files_;
  testing::FakeClock clock_;
  Graph graph_;
  Scope root_{graph_};
  Variable small_ = ops::variable(root_.with_device("/cpu:0"), "small", Tensor::scalar(0.0f));
  Variable large_ =
      ops::variable(root_.with_device("/cpu:1"), "large", Tensor::of(Shape({1500}), std::vector<float>(1500)));
  Variable step_ = ops::create_global_step(root_);
  Saver saver_;
  std::unique_ptr<DirectoryLock> lock_;
  RunJournal journal_{kRun, {.files = &files_, .clock = &clock_}};
  std::shared_ptr<Session> session_;
  std::optional<int64_t> restored_;
};

// Runs a training on a machine whose power fails at each operation on its files in turn, and shows what a restart finds
// in each way in which the disk may be left.
class PowerCutTest : public ::testing::Test {
 protected:
  using Disk = testing::PowerCutFileSystem;
  using Machine = testing::FaultyFileSystem;

  // `before` is done with power, which fails while `during` runs, or when it has just run. What is left of the disk is
  // shown to `look`, in each way.
  template <typename AMachine = Machine>
  void cut_everywhere(const std::function<void(Machine&)>& before, const std::function<void(Machine&)>& during,
                      const std::function<void(Disk& disk)>& look) {
    bool is_done = false;
    for (int n = 0; !is_done; ++n, ++operations_) {
      Disk disk;
      AMachine machine(disk);
      committed_.reset();
      before(machine);
      machine.fail_operation(n, Machine::Fault::kForGood);
      const size_t operations = machine.operations().size();
      try {
        during(machine);
      } catch (const Error&) {
      }
      is_done = machine.operations().size() <= operations + static_cast<size_t>(n);
      for (const testing::PowerCut& cut : testing::PowerCut::all(kSamples)) {
        SCOPED_TRACE(fmt::format("power cut {} of \"{}\", leaving {} with seed {}",
                                 is_done ? "after the last" : "instead", machine.operations().back(),
                                 static_cast<int>(cut.leaves), cut.seed));
        const auto found = disk.after(cut);
        orphan_temporaries(*found);
        look(*found);
        ++cuts_;
        if (HasFailure()) return;
      }
    }
  }

  // Those of this process are another's, since it is another that starts.
  static void orphan_temporaries(Disk& disk) {
    if (!disk.is_directory(kRun)) return;
    for (const std::string& name : disk.list(kRun)) {
      const size_t at = name.find(".tempstate");
      if (at == std::string::npos) continue;
      const std::string other = name.substr(0, at) + ".tempstate1" + name.substr(name.rfind('.'));
      disk.rename(kRun + "/" + name, kRun + "/" + other);
    }
  }

  static constexpr int kSamples = 2;
  LogRecorder log_;
  std::optional<int64_t> committed_;  // the step of the last save that has returned
  int operations_ = 0, cuts_ = 0;
};

}  // namespace longhaul
