#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

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

enum class LogFormat {
  kText,
  kJson  // an object on each line (docs/guide/operating.md), for programs that collect logs; also the progress
};

// How messages are written to stderr from now on. Call it before all else, or set the environment variable
// LONGHAUL_LOG_FORMAT (text, json): a warning says how many lines came before it as text. The sink of a program gets
// messages as ever. Any thread.
void set_log_format(LogFormat format);
void set_log_format(std::string_view name);  // "text", "json". InvalidArgumentError: another
LogFormat log_format();

// Where in the sources a message comes from.
struct LogPlace {
  const char* file = nullptr;  // as the compiler calls it; nullptr: not known
  int line = 0;
};

void log_message(LogLevel level, const std::string& message, const LogPlace& place = {});

// The format of a message, and where it stands.
template <typename... Args>
struct PlacedFormat {
  template <typename Text>
  consteval PlacedFormat(const Text& message, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : text(message), place{file, line} {}

  fmt::format_string<Args...> text;
  LogPlace place;
};

template <typename... Args>
void log_debug(std::type_identity_t<PlacedFormat<Args...>> format, Args&&... args) {
  log_message(LogLevel::kDebug, fmt::format(format.text, std::forward<Args>(args)...), format.place);
}
template <typename... Args>
void log_info(std::type_identity_t<PlacedFormat<Args...>> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format.text, std::forward<Args>(args)...), format.place);
}
template <typename... Args>
void log_warning(std::type_identity_t<PlacedFormat<Args...>> format, Args&&... args) {
  log_message(LogLevel::kWarning, fmt::format(format.text, std::forward<Args>(args)...), format.place);
}
template <typename... Args>
void log_error(std::type_identity_t<PlacedFormat<Args...>> format, Args&&... args) {
  log_message(LogLevel::kError, fmt::format(format.text, std::forward<Args>(args)...), format.place);
}

}  // namespace longhaul
