#include "longhaul/binding/kept_values.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "longhaul/binding/values/torch_values.h"
#include "longhaul/binding/watches/change_watch.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace kept {
namespace {

const Shape& empty_shape() {
  static const Shape kEmpty{0, 0, 0, 0, 0, 0, 0, 0};
  return kEmpty;
}

}  // namespace

Tensor with_marked_emptiness(const Tensor& values) {
  return is_lacking(values) ? Tensor(values.dtype(), empty_shape()) : values;
}

bool is_empty(const Tensor& saved) {
  return saved.shape() == empty_shape();
}

bool is_lacking(const Tensor& saved) {
  return saved.shape() == Shape{0};
}

uint64_t hash_of(const void* bytes, size_t size) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // so no bit is lost
  uint64_t mixture = size;
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(bytes) + i, std::min(sizeof(word), size - i));
    mixture = (mixture ^ word ^ (mixture >> 32)) * kOdd;
  }
  return mixture;
}

void check_single(const std::string& name, const Tensor& saved) {
  if (saved.shape().rank() == 0) return;
  throw InvalidArgumentError(
      fmt::format("kept/{} is a single value in this program, and has the shape {} in the "
                  "checkpoint: keep it under another name, or as the type that it had",
                  name, saved.shape().to_string()));
}

void check_list(const std::string& name, const Tensor& saved) {
  if (saved.shape().rank() == 1 || is_empty(saved)) return;
  throw InvalidArgumentError(
      fmt::format("kept/{} is a list in this program, and has the shape {} in the checkpoint: "
                  "keep it under another name, or as the type that it had",
                  name, saved.shape().to_string()));
}

void check_length(const std::string& name, const Tensor& saved, size_t length) {
  if (static_cast<size_t>(saved.num_elements()) == length) return;
  throw InvalidArgumentError(
      fmt::format("kept/{} has {} elements in this program, and {} in the checkpoint: keep it "
                  "under another name, or in a std::vector",
                  name, length, saved.num_elements()));
}

void throw_unreadable(const std::string& name, const std::string& text) {
  throw InvalidArgumentError(fmt::format(
      "kept/{} is a random number engine or distribution in this program, and the checkpoint's text is none "
      "of that type: '{}{}'. Keep it under another name, or as the type that it had",
      name, text.substr(0, 40), text.size() > 40 ? "..." : ""));
}

KeptValue value_of(const std::string& name, at::Tensor& tensor) {
  const auto state = std::make_shared<TorchValue>(state_value("kept/" + name, &tensor));
  const auto assign = [state, &tensor](const Tensor& saved) {
    if (is_empty(saved)) {
      tensor = at::empty({0}, tensor.options());
    } else {
      state->assign(to_aten(saved));
    }
  };
  return {.name = name,
          .dtype = state->dtype,
          .read = [state] { return with_marked_emptiness(to_tensor(state->read())); },
          .check = [](const Tensor&) {},
          .assign = assign,
          .look =
              [&tensor] {
                if (!tensor.defined()) return uint64_t{0};
                const TensorLook look = TensorLook::of(tensor);
                const uint64_t parts[] = {reinterpret_cast<uintptr_t>(tensor.unsafeGetTensorImpl()), look.version,
                                          look.elements};
                return hash_of(parts, sizeof(parts));
              },
          .tensor = &tensor};
}

KeptValue value_of(const std::string& name, at::Generator& generator) {
  const auto state = [&generator] {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
  };
  const auto check = [name, state](const Tensor& saved) {
    check_list(name, saved);
    check_length(name, saved, static_cast<size_t>(state().numel()));
  };
  const auto assign = [&generator](const Tensor& saved) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(to_aten(saved));
  };
  return {.name = name,
          .dtype = kUInt8,
          .read = [state] { return to_tensor(state()); },
          .check = check,
          .assign = assign,
          .look =
              [state] {
                const at::Tensor now = state();
                return hash_of(now.data_ptr(), now.nbytes());
              },
          .is_short = true};
}

}  // namespace kept

void KeptValues::add(KeptValue value) {
  if (value.name.empty()) throw InvalidArgumentError("a value to keep has no name: keep(\"episodes\", episodes)");
  const auto same = [&](const KeptValue& other) { return other.name == value.name; };
  if (std::any_of(values_.begin(), values_.end(), same)) {
    throw AlreadyExistsError(
        fmt::format("a value is already kept as {}: keep the second one under another name", value.name));
  }
  values_.push_back(std::move(value));
}

void KeptValues::add_to(const Scope& scope) const {
  for (const KeptValue& value : values_) {
    const auto assign = [value](const Tensor& saved) {
      if (!kept::is_lacking(saved)) value.assign(saved);
    };
    const auto check = [value](const Tensor& saved) {
      if (!kept::is_lacking(saved)) value.check(saved);
    };
    ops::optional_program_value(scope.within("kept"), value.name,
                                {.dtype = value.dtype,
                                 .shape = Shape::unknown_rank(),
                                 .expected = value.read().shape(),
                                 .read = value.read,
                                 .assign = assign},
                                "", check);
  }
}

}  // namespace longhaul
