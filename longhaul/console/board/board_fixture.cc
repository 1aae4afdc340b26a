#include "longhaul/console/board/board_fixture.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/events/histogram.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/io/process/process_identity.h"
#include "longhaul/io/records/record.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/saved_state/environment_record.h"

namespace longhaul::console {

WrittenRun::WrittenRun(std::string directory, double began) : directory_(std::move(directory)), began_(began) {
  std::filesystem::create_directories(directory_);
}

void WrittenRun::add(proto::Event event, int64_t step) {
  event.set_step(step);
  event.set_wall_time(began_ + static_cast<double>(step));
  append_record(records_, event.SerializeAsString());
}

void WrittenRun::start(int64_t step) {
  flush();
  path_ =
      join_path(directory_, fmt::format("events.out.tfevents.{:010}.host", static_cast<int64_t>(began_) + files_++));
  proto::Event event;
  event.mutable_session_log()->set_status(proto::SessionLog::START);
  add(event, step);
}

void WrittenRun::scalar(const std::string& tag, int64_t step, double value) {
  summary(step, scalar_summary(tag, static_cast<float>(value)));
}

void WrittenRun::summary(int64_t step, const proto::Summary& summary) {
  proto::Event event;
  *event.mutable_summary() = summary;
  add(event, step);
}

void WrittenRun::flush() {
  if (!records_.empty()) append(std::exchange(records_, {}));
}

// Each time in a later second, however fast a test is: a board looks at what has changed by its time.
void WrittenRun::append(const std::string& bytes) {
  static int seconds = 0;
  std::ofstream(path_, std::ios::app | std::ios::binary) << bytes;
  std::filesystem::last_write_time(path_,
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(++seconds));
}

void WrittenRun::tell(const RunEvent& event) {
  if (journal_.empty()) journal_ = "longhaul run journal 1\n";
  journal_ += format_run_event(event);
  std::ofstream(journal_path(directory_)) << journal_;
}

void WrittenRun::checkpoint(int64_t step, const std::map<std::string, std::string>& facts) {
  const std::string prefix = join_path(directory_, fmt::format("model.ckpt-{}", step));
  BundleWriter writer(FileSystem::real(), prefix);
  writer.add("global_step", Tensor::scalar(step));
  writer.finish();
  if (facts.empty()) return;
  proto::MetaGraphDef meta_graph;
  record_environment(facts, &meta_graph);
  write_file_atomically(FileSystem::real(), meta_graph_filename(prefix), meta_graph.SerializeAsString());
}

namespace {

using Kind = RunEvent::Kind;

Tensor picture(int64_t step) {
  constexpr int64_t kSide = 24;
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const auto far = static_cast<double>((x - 12) * (x - 12) + (y - 12) * (y - 12));
      const bool is_inside = far < 20 + static_cast<double>(step) / 10;
      for (const int64_t part : {x * 10, y * 10, int64_t{is_inside ? 220 : 40}})
        pixels.push_back(static_cast<uint8_t>(part));
    }
  }
  return Tensor::of<uint8_t>(pixels).reshaped({1, kSide, kSide, 3});
}

void train(WrittenRun& run, int64_t from, int64_t to, double rate) {
  run.start(from);
  for (int64_t step = from; step <= to; ++step) {
    const auto x = static_cast<double>(step);
    run.scalar("loss", step, 2.2 / (1 + x * rate) + 0.1 * std::sin(x * 1.7) / (1 + x / 300) + 0.12);
    run.scalar("accuracy", step, 1 - 0.9 / (1 + x * rate * 2) + 0.01 * std::cos(x));
    if (step % 50 != 0) continue;
    std::vector<float> weights;
    for (int i = 0; i < 500; ++i) {
      weights.push_back(static_cast<float>(std::sin(i * 12.9898) * (0.3 + x / 2000) + 0.2 * std::sin(i * 78.233)));
    }
    run.summary(step, histogram_summary("dense/weights", Tensor::of<float>(weights)));
    run.summary(step, image_summary("input", picture(step), 1));
    if (step % 200 == 0) run.summary(step, text_summary("sample", fmt::format("step {}: the quick brown fox", step)));
  }
  run.flush();
}

void record_run(WrittenRun& run, double began, int64_t from, int64_t to) {
  run.tell({.kind = Kind::kBegan, .time = began, .text = "process 7 started 1 boot b host train-3"});
  if (from > 0) {
    run.tell({.kind = Kind::kRestored, .time = began + 2, .step = from, .text = fmt::format("model.ckpt-{}", from)});
  } else {
    run.tell({.kind = Kind::kInitialised, .time = began + 2, .step = 0});
  }
  run.tell({.kind = Kind::kTraining, .time = began + 3, .step = from});
  for (double time = began + 8; time < began + 300; time += 5) {
    run.tell({.kind = Kind::kMark,
              .time = time,
              .step = from + static_cast<int64_t>(static_cast<double>(to - from) * (time - began) / 300)});
  }
  const int64_t saved = to / 100 * 100;
  run.tell({.kind = Kind::kSaved, .time = began + 297, .step = saved, .text = fmt::format("model.ckpt-{}", saved)});
  run.tell({.kind = Kind::kMark, .time = began + 300, .step = to});
}

}  // namespace

void write_demo_runs(const std::string& parent) {
  WrittenRun base(join_path(parent, "baseline"));
  train(base, 0, 420, 0.02);
  train(base, 400, 730, 0.02);
  train(base, 700, 1000, 0.02);
  record_run(base, 1763721934, 0, 420);
  base.tell({.kind = Kind::kFailed, .time = 1763722235, .text = "the loss is not a number"});
  record_run(base, 1763722300, 400, 730);
  record_run(base, 1763722700, 700, 1000);
  base.tell({.kind = Kind::kEnded, .time = 1763723001, .step = 1000});
  base.checkpoint(700, {{"option batch_size", "64"}, {"option rate", "0.02"}, {"threads", "8"}, {"libtorch", "1.13"}});
  base.checkpoint(1000, {{"option batch_size", "64"}, {"option rate", "0.02"}, {"threads", "8"}, {"libtorch", "1.13"}});
  WrittenRun faster(join_path(parent, "faster"), 1763722934);
  train(faster, 0, 600, 0.06);
  record_run(faster, 1763722934, 0, 600);
  faster.checkpoint(600,
                    {{"option batch_size", "64"}, {"option rate", "0.06"}, {"threads", "4"}, {"libtorch", "1.13"}});
}

namespace {

// One that has trained for a minute until then, ten steps a second.
WrittenRun trained_until(const std::string& directory, double end) {
  WrittenRun run(directory, end - 60);
  run.start(0);
  for (int64_t step = 0; step <= 600; step += 10) run.scalar("loss", step, 1 / static_cast<double>(step + 1));
  run.flush();
  run.tell({.kind = Kind::kBegan, .time = end - 60, .text = "process 7 started 1 boot b host train-3"});
  run.tell({.kind = Kind::kInitialised, .time = end - 60, .step = 0});
  for (double time = end - 60; time <= end; time += 5) {
    const auto step = static_cast<int64_t>((time - end + 60) * 10);
    run.tell({.kind = step == 0 ? Kind::kTraining : Kind::kMark, .time = time, .step = step});
  }
  return run;
}

void own(const WrittenRun& run, const ProcessIdentity& process, double now) {
  write_owner(FileSystem::real(), run.directory(),
              {.token = std::string(32, 'a'), .process = process, .since = now - 60, .heartbeat = now});
}

}  // namespace

void write_run_with_rollback(const std::string& directory) {
  WrittenRun run(directory);
  const auto make = [&](int64_t from, int64_t to) {
    run.start(from);
    for (int64_t step = from; step < to; ++step) run.scalar("loss", step, 1 / (1 + static_cast<double>(step) / 50));
    run.flush();
  };
  make(0, 230);
  make(210, 451);
  make(430, 600);
  record_run(run, 1763721934, 0, 230);
  record_run(run, 1763722300, 210, 450);
  const Rollback rollback{.count = 1,
                          .diverged_step = 451,
                          .until_step = 452,
                          .restored_step = 430,
                          .loss = std::nan(""),
                          .checkpoint = "model.ckpt-430"};
  run.tell({.kind = Kind::kDiverged, .time = 1763722601, .step = 452, .text = Rollbacks::text_of(rollback, false)});
  run.tell({.kind = Kind::kRestored, .time = 1763722602, .step = 430, .text = rollback.checkpoint});
  run.tell({.kind = Kind::kTraining, .time = 1763722603, .step = 430});
  run.tell({.kind = Kind::kEnded, .time = 1763722700, .step = 600});
}

void write_runs_in_states(const std::string& parent, double now) {
  const auto path = [&](const char* name) { return join_path(parent, name); };
  trained_until(path("ended"), now - 10).tell({.kind = Kind::kEnded, .time = now - 9, .step = 600});
  WrittenRun events(path("events"));
  events.start(0);
  events.scalar("loss", 1, 1);
  events.flush();
  trained_until(path("failed"), now - 10)
      .tell({.kind = Kind::kFailed, .time = now - 9, .text = "the loss is not a number"});
  WrittenRun hangs = trained_until(path("hangs"), now - 40);
  hangs.tell({.kind = Kind::kHung, .time = now - 5, .text = "no step for 35 s; train waits for the queue"});
  hangs.tell({.kind = Kind::kMark, .time = now, .step = 600});
  own(hangs, this_process(), now);
  ProcessIdentity dead = this_process();
  dead.start_time -= 1;
  own(trained_until(path("killed"), now - 10), dead, now - 10);
  WrittenRun preempted = trained_until(path("preempted"), now - 10);
  preempted.tell({.kind = Kind::kStopRequested, .time = now - 9, .step = 600, .text = "signal 15 (Terminated)"});
  preempted.tell({.kind = Kind::kEnded, .time = now - 8, .text = kPreemptedText});
  WrittenRun saves_fail = trained_until(path("saves_fail"), now);
  saves_fail.tell({.kind = Kind::kSaveFailed,
                   .time = now,
                   .step = 600,
                   .text = text_of_failed_save(3, "model.ckpt-600: No space left on device")});
  own(saves_fail, this_process(), now);
  own(trained_until(path("trains"), now), this_process(), now);
}

}  // namespace longhaul::console
