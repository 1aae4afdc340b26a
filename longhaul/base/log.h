#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

namespace longhaul {

enum class LogLevel {
  kDebug = 0,    // what the library does
  kInfo = 1,     // what happens to the training run: its starting point, checkpoints, signals, the time it took
  kWarning = 2,  // work may be lost, or something may not be as intended
  kError = 3     // something has failed, though training continues
};

// Receives the library's messages. Called from any thread, one call at a time.
//   - It may throw. The code that logs does not fail then; the message goes to stderr, as without a sink, and so does
//     the first exception.
//   - Messages that are logged inside it, by the program or the library, go to stderr.
//   - It may call set_log_sink(); the new sink takes effect with the next message.
//   - It must not wait for another thread that may log, because that thread would wait for the sink.
//     FileWriter::flush() is such a wait.
using LogSink = std::function<void(LogLevel, const std::string&)>;

// Replaces the sink and returns the previous one. Until a program sets one, messages go through spdlog to stderr, at
// kInfo and above, or at the level that the environment variable LONGHAUL_LOG_LEVEL names (debug, info, warning, error,
// off). The level is coloured on a terminal, unless NO_COLOR is set.
LogSink set_log_sink(LogSink sink);

void log_message(LogLevel level, const std::string& message);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace longhaul
