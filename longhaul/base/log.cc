#include "longhaul/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/json_log.h"
#include "longhaul/base/live_line.h"
#include "longhaul/base/log_tail.h"
#include "longhaul/base/mutex.h"
#include "longhaul/base/whole_lines.h"

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

std::optional<LogFormat> format_named(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return std::nullopt;
}

std::optional<spdlog::level::level_enum> level_named(std::string_view name) {
  static const std::map<std::string_view, spdlog::level::level_enum> levels{{"debug", spdlog::level::debug},
                                                                            {"info", spdlog::level::info},
                                                                            {"warning", spdlog::level::warn},
                                                                            {"error", spdlog::level::err},
                                                                            {"off", spdlog::level::off}};
  const auto level = levels.find(name);
  return level != levels.end() ? std::optional(level->second) : std::nullopt;
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

// Messages without a sink. Any thread, at any time.
class ToStderr {
 public:
  ToStderr() {
    text_.set_pattern("%Y-%m-%d %H:%M:%S.%e %n %^%l%$: %v");
    obey_level(variable("LONGHAUL_LOG_LEVEL"));
    obey_format(variable("LONGHAUL_LOG_FORMAT"));
    for (const auto& [level, message] : complaints_) write(level, message, {});
  }

  void write(LogLevel level, const std::string& message, const LogPlace& place) {
    if (format_ == LogFormat::kJson) return write_json(level, message, place, {});
    if (!text_.should_log(to_spdlog(level))) return;
    ++text_lines_;
    clear_live_line();
    text_.log(to_spdlog(level), fit_for_terminal(message));
  }

  void write_json(LogLevel level, std::string_view message, const LogPlace& place,
                  const std::vector<LogMember>& members) {
    if (!text_.should_log(to_spdlog(level))) return;
    std::vector<LogMember> all = members;
    MutexLock lock(mutex_);
    if (lost_lines_ > 0) all.push_back({"lost_lines", lost_lines_});
    lost_lines_ = lines_.write(json_log_line(level, message, place, all)) ? 0 : lost_lines_ + 1;
  }

  LogFormat format() const { return format_; }
  // Returns how many lines were written as text, if that has ended by it.
  int64_t set_format(LogFormat format) {
    const LogFormat before = format_.exchange(format);
    return before == LogFormat::kText && format == LogFormat::kJson ? text_lines_.load() : 0;
  }

 private:
  void clear_live_line() {
    if (!has_live_line() || ::isatty(STDERR_FILENO) != 1 || !take_live_line()) return;
    MutexLock lock(mutex_);
    lines_.write(kClearLine);
  }
  // What is wrong here is told of: nothing is hidden by a mistake in it.
  void obey_level(std::string_view name) {
    text_.set_level(level_named(name).value_or(spdlog::level::info));
    if (name.empty() || level_named(name)) return;
    complain(LogLevel::kWarning,
             "LONGHAUL_LOG_LEVEL is \"{}\", but must be debug, info, warning, error or off; using info", name);
  }
  void obey_format(std::string_view name) {
    format_ = format_named(name).value_or(LogFormat::kText);
    if (name.empty() || format_named(name)) return;
    complain(LogLevel::kError, "LONGHAUL_LOG_FORMAT is \"{}\", but must be text or json; using text", name);
  }
  void complain(LogLevel level, fmt::format_string<std::string> text, std::string_view name) {
    complaints_.emplace_back(level, fmt::format(text, excerpt(name)));
  }

  spdlog::logger text_{"longhaul", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(color_mode())};
  std::vector<std::pair<LogLevel, std::string>> complaints_;  // of the construction
  std::atomic<LogFormat> format_{LogFormat::kText};
  std::atomic<int64_t> text_lines_{0};
  Mutex mutex_;
  WholeLines lines_ GUARDED_BY(mutex_){STDERR_FILENO};
  int64_t lost_lines_ GUARDED_BY(mutex_) = 0;  // since the last one that was written
};

// Where the message comes from that this thread logs, for a sink that knows what to do with it.
thread_local LogPlace place_of_message;

class WithPlace {
 public:
  explicit WithPlace(const LogPlace& place) : before_(std::exchange(place_of_message, place)) {}
  ~WithPlace() { place_of_message = before_; }
  WithPlace(const WithPlace&) = delete;
  WithPlace& operator=(const WithPlace&) = delete;

 private:
  const LogPlace before_;
};

struct SetSink {
  explicit SetSink(LogSink sink) : call(std::move(sink)) {}
  LogSink call;
  bool has_failed = false;
};

struct Log {
  ToStderr to_stderr;

  Mutex mutex;  // held while the sink is called
  std::shared_ptr<SetSink> sink GUARDED_BY(mutex) = std::make_shared<SetSink>([this](LogLevel level,
                                                                                     const std::string& message) {
    to_stderr.write(level, message, place_of_message);
  });
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
void tell_without(Log& log, SetSink& sink, LogLevel level, const std::string& message) {
  log.to_stderr.write(level, message, place_of_message);
  if (std::exchange(sink.has_failed, true)) return;
  const std::string why = message_of(std::current_exception());
  log.to_stderr.write(LogLevel::kError,
                      "the log sink threw an exception; messages that it throws on are written here: " + excerpt(why),
                      {});
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  Log& log = the_log();
  if (is_in_sink) return set_from_within(log, std::move(sink));
  MutexLock lock(log.mutex);
  return std::move(exchange_sink(log, std::move(sink))->call);
}

void set_log_format(LogFormat format) {
  const int64_t text_lines = the_log().to_stderr.set_format(format);
  if (text_lines == 0) return;
  log_warning(
      "{} line{} of this log {} written as text, before set_log_format(): call it before all else, or set the "
      "environment variable LONGHAUL_LOG_FORMAT to json",
      text_lines, text_lines == 1 ? "" : "s", text_lines == 1 ? "was" : "were");
}

void set_log_format(std::string_view name) {
  if (const auto format = format_named(name)) return set_log_format(*format);
  throw InvalidArgumentError(fmt::format("the format of the log is \"{}\", but must be text or json", excerpt(name)));
}

LogFormat log_format() {
  return the_log().to_stderr.format();
}

void write_json_line(LogLevel level, std::string_view message, const std::vector<LogMember>& members,
                     const LogPlace& place) {
  the_log().to_stderr.write_json(level, message, place, members);
}

void log_message(LogLevel level, const std::string& message, const LogPlace& place) {
  note_in_log_tails(level, message);
  Log& log = the_log();
  if (is_in_sink) return log.to_stderr.write(level, message, place);
  const WithPlace with_place(place);
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
