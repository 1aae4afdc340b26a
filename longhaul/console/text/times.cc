#include "longhaul/console/text/times.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace longhaul::console {
namespace {

constexpr double kLatestTime = 253402300799;  // the end of the year 9999

}  // namespace

std::string utc_text(double time) {
  if (!(time >= 0 && time <= kLatestTime)) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(time)));
}

std::string duration_text(Seconds duration) {
  if (!(std::abs(duration.count()) < 1e15)) return "-";
  if (duration.count() < 10) return fmt::format("{:.3g} s", std::max(0.0, duration.count()));
  const auto seconds = static_cast<int64_t>(std::llround(duration.count()));
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  const int64_t minutes = seconds / 60;
  if (minutes < 24 * 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} d {} h", minutes / (24 * 60), minutes / 60 % 24);
}

std::string age_text(double time, double now) {
  constexpr double kTolerated = 1;
  if (time > now + kTolerated) {
    return fmt::format("{} in the future, by this machine's clock", duration_text(Seconds{time - now}));
  }
  return duration_text(Seconds{std::max(0.0, now - time)}) + " ago";
}

}  // namespace longhaul::console
