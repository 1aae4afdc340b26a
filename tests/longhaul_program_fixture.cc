#include "tests/longhaul_program_fixture.h"

#include <cmath>
#include <optional>
#include <regex>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/events/event_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/io/records/record.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

std::vector<float> weights(float value) {
  std::vector<float> values(200);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = value * static_cast<float>(std::sin(static_cast<double>(i * i)));
  }
  return values;
}

}  // namespace

int LonghaulProgram::longhaul(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{LONGHAUL_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  testing::Process program(command, path("output"));
  const int status = program.wait();
  out_ = program.output();
  err_ = program.errors();
  return status;
}

int LonghaulProgram::certificates(const std::string& cluster, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"certificates", "--cluster=" + cluster, "--out=" + path("made")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return longhaul(arguments);
}

nlohmann::json LonghaulProgram::json_of(std::vector<std::string> arguments, int status) {
  arguments.emplace_back("--json");
  EXPECT_EQ(longhaul(arguments), status) << err_;
  return nlohmann::json::parse(out_);
}

LonghaulTrainings::LonghaulTrainings() {
  files_.make_directories(path("runs/demo"));
  save(1000, 0.25f);
  save(2000, 0.5f);
  CheckpointState state;
  state.all_model_checkpoint_paths = {path("runs/demo/model.ckpt-1000"), path("runs/demo/model.ckpt-2000")};
  state.model_checkpoint_path = path("runs/demo/model.ckpt-2000");
  write_checkpoint_state(files_, path("runs/demo"), state);
  write_journal();
  write_events();
  OwnerRecord chief{.token = std::string(32, 'a'), .process = this_process(), .since = now_ - 100, .heartbeat = now_};
  chief.process.start_time -= 1;  // it is dead
  chief.process.host = "train-3";
  chief.process.pid = 4711;
  write_owner(files_, path("runs/demo"), chief);
}

void LonghaulTrainings::save(int64_t step, float value) {
  BundleWriter writer(files_, path("runs/demo/model.ckpt-" + std::to_string(step)));
  writer.add("dense/bias", Tensor::of<float>(std::vector<float>(10, value)));
  writer.add("dense/weights", Tensor::of<float>(Shape{20, 10}, weights(value)));
  writer.add("global_step", Tensor::scalar(step));
  writer.finish();
}

void LonghaulTrainings::write_journal() {
  using Kind = RunEvent::Kind;
  std::string text = "longhaul run journal 1\n";
  const auto tell = [&](Kind kind, double ago, std::optional<int64_t> step, const std::string& what = "") {
    text += format_run_event({.kind = kind, .time = now_ - ago, .step = step, .text = what});
  };
  const std::string process = "process 4711 started 7 boot b host train-3";
  tell(Kind::kBegan, 7200, std::nullopt, process);
  tell(Kind::kInitialised, 7198, 0);
  tell(Kind::kTraining, 7197, 1);
  for (int i = 1; i <= 60; ++i) {
    tell(Kind::kMark, 7197 - 60 * i, 20 * i);
    if (i == 50) tell(Kind::kSaved, 7197 - 60 * i, 1000, "model.ckpt-1000");
  }
  tell(Kind::kFailed, 3500, std::nullopt, "the loss is not a number");
  tell(Kind::kBegan, 3000, std::nullopt, process);
  tell(Kind::kRestored, 2998, 1000, "model.ckpt-1000");
  tell(Kind::kTraining, 2997, 1001);
  for (int i = 1; i <= 560; ++i) {
    tell(Kind::kMark, 2997 - 5 * i, 1001 + 2 * i);
    if (i == 500) tell(Kind::kSaved, 2997 - 5 * i, 2000, "model.ckpt-2000");
  }
  write_file_atomically(files_, path("runs/demo/run.journal"), text);
}

void LonghaulTrainings::write_events() {
  EventWriter writer(files_, Clock::real(), path("runs/demo"), "");
  std::string records;
  for (int64_t step = 0; step <= 2000; step += 10) {
    proto::Event event;
    event.set_wall_time(now_ - 3000 + static_cast<double>(step));
    event.set_step(step);
    *event.mutable_summary() = scalar_summary("loss", 2.0f / (1.0f + static_cast<float>(step) / 100.0f));
    records += framed(event.SerializeAsString());
  }
  writer.append(records);
  writer.close();
}

std::string LonghaulTrainings::framed(const std::string& record) {
  const auto file = files_.create(path("record"));
  RecordWriter(*file).write(record);
  file->close();
  return read_file(files_, path("record"));
}

std::string shape_of(std::string text) {
  const std::string number = "[-+]?[0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?";
  text = std::regex_replace(text, std::regex("\\b" + number + " (bytes|kB|MB|GB)"), "SIZE");
  text = std::regex_replace(text, std::regex("(" + number + " (s|min|h|d)\\b ?)+"), "TIME ");
  text = std::regex_replace(text, std::regex(number), "N");
  text = std::regex_replace(text, std::regex("(N-)+N"), "N");
  text = std::regex_replace(text, std::regex("#+"), "#");
  return std::regex_replace(text, std::regex(" +"), " ");
}

}  // namespace longhaul
