#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/scripted_session.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {

// RestoreV2 as sessions do it.
std::vector<Tensor> restore_tensors(const Operation&, const std::vector<Tensor>& inputs);

// `variables`: those of a server that it shares with others; nullptr: its own.
std::unique_ptr<testing::ScriptedSession> make_scripted_session(
    Graph& graph, std::shared_ptr<testing::ScriptedSession::Variables> variables = nullptr);

// A session that notes the time until the deadline of its close.
class TimedSession : public testing::ScriptedSession {
 public:
  TimedSession(Graph& graph, std::optional<Seconds>& left) : ScriptedSession(graph), left_(left) {}
  void close_before(const Deadline* deadline) override {
    left_ = deadline != nullptr ? deadline->left() : std::nullopt;
    ScriptedSession::close_before(deadline);
  }

 private:
  std::optional<Seconds>& left_;
};

// What the library logs while this lives.
class LogRecorder {
 public:
  LogRecorder();
  ~LogRecorder();
  std::string text(LogLevel from = LogLevel::kDebug) const;

 private:
  struct Lines;
  const std::shared_ptr<Lines> lines_;
  LogSink before_;
};

}  // namespace longhaul
