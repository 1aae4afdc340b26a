#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

namespace longhaul {

enum class LogLevel {
  kDebug = 0,    // what the library does
  kInfo = 1,     // what happens to the training: from where it goes on, each checkpoint, a signal, the time it took
  kWarning = 2,  // what may cost work, or differ from what was meant
  kError = 3     // what has failed, though the training goes on
};

// Where the library's messages go. It is called from any thread, one call at a time.
//   - It may throw: nothing that logs fails for it. The message goes to stderr instead, as without a sink, and at the
//     first time what was thrown.
//   - What is logged from within it, by the library as well, goes to stderr.
//   - It may call set_log_sink(), with what holds from the next message on.
//   - It must not wait for another thread that may log, as FileWriter::flush() does: that one waits for it.
using LogSink = std::function<void(LogLevel, const std::string&)>;

// Replaces the sink and returns the one before. Until a program sets one, messages go through spdlog to stderr, from
// kInfo on, or from the level that the environment variable LONGHAUL_LOG_LEVEL names (debug, info, warning, error,
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
