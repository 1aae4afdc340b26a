#include "longhaul/base/live_line.h"

#include <atomic>

namespace longhaul {
namespace {

std::atomic<bool> is_open{false};

}  // namespace

bool has_live_line() {
  return is_open.load(std::memory_order_relaxed);
}

void note_live_line() {
  is_open = true;
}

bool take_live_line() {
  return is_open.exchange(false);
}

}  // namespace longhaul
