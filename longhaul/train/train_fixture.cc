#include "longhaul/train/train_fixture.h"

namespace longhaul {

std::vector<Tensor> restore_tensors(const Operation&, const std::vector<Tensor>& inputs) {
  const BundleReader reader(FileSystem::real(), inputs[0].item<std::string>());
  const auto names = inputs[1].flat<std::string>(), slices = inputs[2].flat<std::string>();
  std::vector<Tensor> values;
  for (size_t i = 0; i < names.size(); ++i) {
    values.push_back(slices[i].empty() ? reader.read(names[i])
                                       : reader.read_slice(names[i], parse_shape_and_slice(slices[i]).second));
  }
  return values;
}

std::unique_ptr<testing::ScriptedSession> make_scripted_session(
    Graph& graph, std::shared_ptr<testing::ScriptedSession::Variables> variables) {
  if (!variables) variables = std::make_shared<testing::ScriptedSession::Variables>();
  auto session = std::make_unique<testing::ScriptedSession>(graph, std::move(variables));
  session->on("RestoreV2", restore_tensors);
  return session;
}

struct LogRecorder::Lines {
  Mutex mutex;
  std::vector<std::pair<LogLevel, std::string>> lines GUARDED_BY(mutex);
};

LogRecorder::LogRecorder() : lines_(std::make_shared<Lines>()) {
  before_ = set_log_sink([lines = lines_](LogLevel level, const std::string& line) {
    MutexLock lock(lines->mutex);
    lines->lines.emplace_back(level, line);
  });
}

LogRecorder::~LogRecorder() {
  set_log_sink(before_);
}

std::string LogRecorder::text(LogLevel from) const {
  MutexLock lock(lines_->mutex);
  std::string text;
  for (const auto& [level, line] : lines_->lines) {
    if (level >= from) text += line + "\n";
  }
  return text;
}

}  // namespace longhaul
