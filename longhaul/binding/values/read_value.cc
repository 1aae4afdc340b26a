#include "longhaul/binding/values/read_value.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/binding/overlap/overlapped_copies.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {

Tensor read_value(const TorchValue& value, OverlappedCopies& copies) {
  SnapshotMoment* const moment = SnapshotMoment::of_this_thread();
  PendingCopy* const later = moment != nullptr && value.copy_later ? copies.copies_of(*moment) : nullptr;
  try {
    return to_tensor(later != nullptr ? value.copy_later(*later) : value.read());
  } catch (const c10::Error& error) {
    throw InternalError(
        fmt::format("{} cannot be read: {}. A device that has failed stays so for this process: start "
                    "the program again, which continues from its newest checkpoint",
                    value.name, error.what_without_backtrace()));
  }
}

}  // namespace longhaul
