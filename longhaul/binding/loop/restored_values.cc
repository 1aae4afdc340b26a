#include "longhaul/binding/loop/restored_values.h"

#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {

// `read` may lend memory that the next read of the value reuses.
void RestoredValues::keep() {
  for (Value& value : values_) value.kept = value.read();
}

void RestoredValues::put_back(bool with_weights) {
  for (const Value& value : values_) {
    if ((with_weights || !value.is_weight) && !identical(value.read(), value.kept)) value.assign(value.kept);
  }
}

}  // namespace longhaul
