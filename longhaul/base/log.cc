#include "longhaul/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

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
    logger.warn("LONGHAUL_LOG_LEVEL is \"{}\": it may be debug, info, warning, error or off; it is info now", name);
  }
}

// https://no-color.org
spdlog::color_mode color_mode() {
  return variable("NO_COLOR").empty() ? spdlog::color_mode::automatic : spdlog::color_mode::never;
}

LogSink spdlog_sink() {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(color_mode());
  auto logger = std::make_shared<spdlog::logger>("longhaul", std::move(sink));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %^%l%$: %v");
  set_level(*logger, variable("LONGHAUL_LOG_LEVEL"));
  return [logger](LogLevel at, const std::string& message) { logger->log(to_spdlog(at), message); };
}

struct Log {
  Mutex mutex;
  LogSink sink GUARDED_BY(mutex) = spdlog_sink();
};

Log& the_log() {
  static Log* log = new Log;  // outlives every static object that may still log while the process ends
  return *log;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  Log& log = the_log();
  MutexLock lock(log.mutex);
  return std::exchange(log.sink, std::move(sink));
}

void log_message(LogLevel level, const std::string& message) {
  Log& log = the_log();
  MutexLock lock(log.mutex);
  if (log.sink) log.sink(level, message);
}

}  // namespace longhaul
