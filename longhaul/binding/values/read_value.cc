#include "longhaul/binding/values/read_value.h"

#include "longhaul/binding/overlap/overlapped_copies.h"
#include "longhaul/runtime/aten/aten_tensor.h"
#include "longhaul/runtime/devices/device_error.h"

namespace longhaul {

Tensor read_value(const TorchValue& value, OverlappedCopies& copies) {
  SnapshotMoment* const moment = SnapshotMoment::of_this_thread();
  PendingCopy* const later = moment != nullptr && value.copy_later ? copies.copies_of(*moment) : nullptr;
  try {
    return to_tensor(later != nullptr ? value.copy_later(*later) : value.read());
  } catch (const c10::Error& error) {
    throw_device_error(value.name + " cannot be read", error);
  }
}

}  // namespace longhaul
