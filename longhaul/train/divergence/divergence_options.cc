#include "longhaul/train/divergence/divergence_options.h"

#include <fmt/format.h>

namespace longhaul {
namespace {

void check_count(bool is_good, const char* name, int64_t value) {
  if (is_good) return;
  throw InvalidArgumentError(fmt::format("DivergenceOptions::{} is {}, want a number from 0 on", name, value));
}

}  // namespace

void check_divergence(const DivergenceOptions& options) {
  check_loss_watch(options.watch);
  check_count(options.margin_steps >= 0, "margin_steps", options.margin_steps);
  check_count(options.max_rollbacks >= 0, "max_rollbacks", options.max_rollbacks);
  check_count(options.within_steps >= 0, "within_steps", options.within_steps);
}

bool is_rollback(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const RollBackError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace longhaul
