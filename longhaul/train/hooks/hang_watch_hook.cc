#include "longhaul/train/hooks/hang_watch_hook.h"

#include <utility>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/status/run_status.h"

namespace longhaul {

HangWatchHook::HangWatchHook(HangWatchHookOptions options) : options_(std::move(options)) {
  check_hang(options_.hang, "hang");
}

void HangWatchHook::begin(Graph&) {
  writer_ = hook_writer(nullptr, options_.output_dir, options_.files, options_.clock);
}

void HangWatchHook::after_create_session(Session&, const Coordinator&) {
  watch_ = std::make_unique<HangWatch>(
      options_.hang, *options_.clock,
      WatchedTraining{.steps = [runs = runs_] { return runs->load(std::memory_order_relaxed); },
                      .records = {options_.tenure ? options_.tenure->journal() : nullptr, writer_}});
  if (options_.tenure && options_.tenure->status()) options_.tenure->status()->watch_hangs(watch_->teller());
}

}  // namespace longhaul
