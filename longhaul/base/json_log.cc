#include "longhaul/base/json_log.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "longhaul/base/clock.h"
#include "longhaul/base/step_of_thread.h"

namespace longhaul {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostMessage = 256 * 1024;  // bytes

std::string utc_text(double seconds) {
  const double whole = std::floor(seconds);
  const auto time = static_cast<std::time_t>(whole);
  std::tm utc{};
  gmtime_r(&time, &utc);
  const auto micros = std::min(999999, static_cast<int>((seconds - whole) * 1e6));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, micros);
}

const char* severity(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "error";
}

std::string thread_name() {
  char name[16] = "";
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 ? name : "";
}

std::string cut(std::string_view message) {
  if (message.size() <= kMostMessage) return std::string(message);
  return fmt::format("{}... ({} bytes)", message.substr(0, kMostMessage), message.size());
}

}  // namespace

std::string place_text(const LogPlace& place) {
  if (place.file == nullptr) return "";
  const std::string_view file = place.file;
  const size_t ours = file.rfind("/longhaul/");
  const size_t begin = ours != file.npos ? ours + 1 : file.rfind('/') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", file.substr(file.starts_with("longhaul/") ? 0 : begin), place.line);
}

std::string json_log_line(LogLevel level, std::string_view message, const LogPlace& place,
                          const std::vector<LogMember>& members) {
  Json line = Json::object();
  line["time"] = utc_text(Clock::real().wall_time());
  line["severity"] = severity(level);
  if (place.file != nullptr) line["source"] = place_text(place);
  line["thread"] = thread_name();
  line["thread_id"] = static_cast<int64_t>(gettid());
  if (const auto step = StepOfThread::current()) line["step"] = *step;
  line["message"] = cut(message);
  for (const LogMember& member : members) {
    std::visit([&](const auto& value) { line[member.name] = value; }, member.value);
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace longhaul
