#include "longhaul/train/saved_state/saved_size.h"

#include "longhaul/ops/external_variable.h"

namespace longhaul {
namespace {

// Of a tensor in a checkpoint; of one whose shape is not known, -1.
int64_t num_elements_of(const SaverNodes::SavedTensor& tensor) {
  if (const int64_t known = tensor.read.shape().num_elements(); known >= 0) return known;
  const Operation op = tensor.read.op();
  const Operation source = op.type() == "Identity" ? op.inputs()[0].op() : op;
  const Shape* expected = source.find_attr<Shape>(kExpectedShapeAttr);
  return expected != nullptr ? expected->num_elements() : -1;
}

}  // namespace

SavedSize saved_size(const std::vector<SaverNodes::SavedTensor>& tensors) {
  SavedSize size;
  for (const SaverNodes::SavedTensor& tensor : tensors) {
    const int64_t count = num_elements_of(tensor);
    if (count < 0 || tensor.read.dtype() == kString) {
      size.is_all = false;
    } else {
      size.bytes += static_cast<uint64_t>(count) * dtype_size(tensor.read.dtype());
    }
  }
  return size;
}

}  // namespace longhaul
