#include "longhaul/train/signals/preemption_grace.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr char kVariable[] = "LONGHAUL_PREEMPTION_GRACE";
constexpr char kJobEnd[] = "SLURM_JOB_END_TIME";

// nullopt: it is no number, or none from 0 on that is finite.
std::optional<double> parse_seconds(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

}  // namespace

VariableReader process_variables() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

PreemptionGrace::PreemptionGrace(std::optional<Seconds> told, const VariableReader& variables)
    : is_in_pod_(variables("KUBERNETES_SERVICE_HOST") != nullptr) {
  if (const char* end = variables(kJobEnd)) job_end_ = parse_seconds(end);
  if (told) {
    if (!std::isfinite(told->count()) || *told < Seconds{0}) {
      throw InvalidArgumentError(
          fmt::format("the grace period of a preemption is {} s: it must be 0 or more, and finite", told->count()));
    }
    fixed_ = Period{*told, "set by the program"};
  } else if (const char* text = variables(kVariable)) {
    const std::optional<double> seconds = parse_seconds(text);
    if (!seconds) {
      throw InvalidArgumentError(
          fmt::format("{} is \"{}\": set it to a number of seconds, such as 120", kVariable, text));
    }
    fixed_ = Period{Seconds{*seconds}, kVariable};
  }
}

PreemptionGrace::Period PreemptionGrace::after(int signal, double wall_time) const {
  if (fixed_) return *fixed_;
  const bool is_warning = signal != 0 && signal != SIGTERM && signal != SIGHUP;
  if (is_warning && job_end_ && *job_end_ > wall_time) return {Seconds{*job_end_ - wall_time}, kJobEnd};
  return {kDefault, is_in_pod_ ? fmt::format("Kubernetes's default; set {} if it differs", kVariable)
                               : fmt::format("the default; {} overrides it", kVariable)};
}

}  // namespace longhaul
