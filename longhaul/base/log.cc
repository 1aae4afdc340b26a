#include "longhaul/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/log_tail.h"
#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A level with another name is told of: nothing is hidden by a mistake in it.
void set_level(spdlog::logger& logger, std::string_view name) {
  static const std::map<std::string_view, spdlog::level::level_enum> levels{{"debug", spdlog::level::debug},
                                                                            {"info", spdlog::level::info},
                                                                            {"warning", spdlog::level::warn},
                                                                            {"error", spdlog::level::err},
                                                                            {"off", spdlog::level::off}};
  const auto level = levels.find(name);
  logger.set_level(level != levels.end() ? level->second : spdlog::level::info);
  if (level == levels.end() && !name.empty()) {
    logger.warn("LONGHAUL_LOG_LEVEL is \"{}\", but must be debug, info, warning, error or off; using info",
                excerpt(name));
  }
}

// https://no-color.org
spdlog::color_mode color_mode() {
  return variable("NO_COLOR").empty() ? spdlog::color_mode::automatic : spdlog::color_mode::never;
}

// A message may have a name in it that is anybody's. Its lines stay lines, without what a terminal would obey.
std::string fit_for_terminal(std::string_view message) {
  constexpr size_t kMostOfLine = 20000;  // bytes
  std::string shown;
  while (true) {
    const size_t end = std::min(message.find('\n'), message.size());
    shown += excerpt(message.substr(0, end), kMostOfLine);
    if (end == message.size()) return shown;
    shown += '\n';
    message.remove_prefix(end + 1);
  }
}

LogSink spdlog_sink() {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(color_mode());
  auto logger = std::make_shared<spdlog::logger>("longhaul", std::move(sink));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %^%l%$: %v");
  set_level(*logger, variable("LONGHAUL_LOG_LEVEL"));
  return [logger](LogLevel at, const std::string& message) { logger->log(to_spdlog(at), fit_for_terminal(message)); };
}

struct SetSink {
  explicit SetSink(LogSink sink) : call(std::move(sink)) {}
  LogSink call;
  bool has_failed = false;
};

struct Log {
  const LogSink to_stderr = spdlog_sink();  // any thread, at any time

  Mutex mutex;  // held while the sink is called
  std::shared_ptr<SetSink> sink GUARDED_BY(mutex) = std::make_shared<SetSink>(to_stderr);
};

// Whether this thread is in the sink, and so holds the mutex.
thread_local bool is_in_sink = false;

class InSink {
 public:
  InSink() { is_in_sink = true; }
  ~InSink() { is_in_sink = false; }
  InSink(const InSink&) = delete;
  InSink& operator=(const InSink&) = delete;
};

Log& the_log() {
  static Log* log = new Log;  // outlives every static object that may still log while the process ends
  return *log;
}

std::shared_ptr<SetSink> exchange_sink(Log& log, LogSink sink) REQUIRES(log.mutex) {
  return std::exchange(log.sink, std::make_shared<SetSink>(std::move(sink)));
}

// The one that runs stays whole until it has returned: it is copied, not moved.
LogSink set_from_within(Log& log, LogSink sink) NO_THREAD_SAFETY_ANALYSIS {
  return exchange_sink(log, std::move(sink))->call;
}

// A message that its sink has thrown at.
void tell_without(const Log& log, SetSink& sink, LogLevel level, const std::string& message) {
  log.to_stderr(level, message);
  if (std::exchange(sink.has_failed, true)) return;
  const std::string why = message_of(std::current_exception());
  log.to_stderr(LogLevel::kError,
                "the log sink threw an exception; messages that it throws on are written here: " + excerpt(why));
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  Log& log = the_log();
  if (is_in_sink) return set_from_within(log, std::move(sink));
  MutexLock lock(log.mutex);
  return std::move(exchange_sink(log, std::move(sink))->call);
}

void log_message(LogLevel level, const std::string& message) {
  note_in_log_tails(level, message);
  Log& log = the_log();
  if (is_in_sink) return log.to_stderr(level, message);
  MutexLock lock(log.mutex);
  const InSink in_sink;
  const std::shared_ptr<SetSink> sink = log.sink;  // stays, if it sets another
  try {
    if (sink->call) sink->call(level, message);
  } catch (...) {
    tell_without(log, *sink, level, message);
  }
}

}  // namespace longhaul
