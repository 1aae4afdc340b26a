#include "longhaul/binding/loop/restored_settings.h"

#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {

// `read` may lend memory that the next read of the value reuses.
void RestoredSettings::keep() {
  for (Setting& setting : settings_) setting.kept = setting.read();
}

void RestoredSettings::put_back() {
  for (Setting& setting : settings_) {
    if (setting.kept.defined() && !identical(setting.read(), setting.kept)) setting.assign(setting.kept);
    setting.kept = Tensor();
  }
}

}  // namespace longhaul
