#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <locale>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

class Scope;

// A value of the program as checkpoints have it. KeptValues makes them.
struct KeptValue {
  std::string name;  // below "kept/"
  DType dtype;
  std::function<Tensor()> read;               // a copy
  std::function<void(const Tensor&)> check;   // InvalidArgumentError: the value cannot be set to this one
  std::function<void(const Tensor&)> assign;  // after check()
  std::function<uint64_t()> look;             // another number if the value has changed, as far as a sample shows
  at::Tensor* tensor = nullptr;               // if it is one
  bool is_short = false;                      // a number, a string, an engine or a generator
};

class KeptValues;

namespace kept {

template <typename T>
concept Number = (std::is_arithmetic_v<T> || std::is_enum_v<T>) && !std::is_same_v<T, long double>;
template <typename T>
concept Element = Number<T> || std::is_same_v<T, std::string>;

// A container of numbers or strings: std::vector, std::deque, std::array.
template <typename T>
concept Sequence = Element<typename T::value_type> && requires(const T& values) {
  values.begin();
  values.end();
  values.size();
} && !std::is_same_v<T, std::string>;
template <typename T>
concept FixedSequence = Sequence<T> && requires { std::tuple_size<T>::value; };

// A standard engine of random numbers, or a distribution, which may have a number left over.
template <typename T>
concept Random = (std::uniform_random_bit_generator<T> || requires(T& distribution) {
                   typename T::param_type;
                   distribution.reset();
                 }) && requires(T& value, std::ostream& out, std::istream& in) {
  out << value;
  in >> value;
};

// An object that keeps what it consists of: void keep_in(KeptValues& kept, const std::string& name).
template <typename T>
concept Composite = requires(T& value, KeptValues& kept, const std::string& name) { value.keep_in(kept, name); };

// The type that a checkpoint has for a number or a string.
template <typename T>
auto stored_type() {
  if constexpr (std::is_enum_v<T>) {
    return stored_type<std::underlying_type_t<T>>();
  } else if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) {
    return T();
  } else if constexpr (sizeof(T) == 1) {
    return std::conditional_t<std::is_signed_v<T>, int8_t, uint8_t>();
  } else if constexpr (sizeof(T) == 2) {
    return std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>();
  } else if constexpr (sizeof(T) == 4) {
    return std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>();
  } else {
    return std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>();
  }
}
template <typename T>
using Stored = decltype(stored_type<T>());

// A restore passes a tensor of shape [0] in place of a value that the checkpoint lacks. So what is empty has another
// shape in checkpoints: eight dimensions of 0.
Tensor with_marked_emptiness(const Tensor& values);
bool is_empty(const Tensor& saved);
bool is_lacking(const Tensor& saved);

uint64_t hash_of(const void* bytes, size_t size);
// InvalidArgumentError: `saved` is not a single element; not a list; a list of another length.
void check_single(const std::string& name, const Tensor& saved);
void check_list(const std::string& name, const Tensor& saved);
void check_length(const std::string& name, const Tensor& saved, size_t length);
[[noreturn]] void throw_unreadable(const std::string& name, const std::string& text);

template <Element T>
KeptValue value_of(const std::string& name, T& value) {
  return {.name = name,
          .dtype = kDTypeOf<Stored<T>>,
          .read = [&value] { return Tensor::scalar(static_cast<Stored<T>>(value)); },
          .check = [name](const Tensor& saved) { check_single(name, saved); },
          .assign = [&value](const Tensor& saved) { value = static_cast<T>(saved.flat<Stored<T>>()[0]); },
          .look =
              [&value] {
                if constexpr (std::is_same_v<T, std::string>) {
                  return hash_of(value.data(), value.size());
                } else {
                  return hash_of(&value, sizeof(value));
                }
              },
          .is_short = true};
}

// Some of the elements, so that a long list costs a step nothing.
template <Sequence T>
uint64_t look_at(const T& values) {
  constexpr size_t kElements = 64;
  const size_t size = values.size(), stride = size / kElements + 1;
  uint64_t mixture = hash_of(&size, sizeof(size));
  for (size_t i = 0; i < size; i += stride) {
    const auto& element = *std::next(values.begin(), static_cast<std::ptrdiff_t>(i + stride < size ? i : size - 1));
    if constexpr (std::is_same_v<typename T::value_type, std::string>) {
      mixture = mixture * 31 + hash_of(element.data(), element.size());
    } else {
      const auto number = static_cast<typename T::value_type>(element);
      mixture = mixture * 31 + hash_of(&number, sizeof(number));
    }
  }
  return mixture;
}

template <Sequence T>
KeptValue value_of(const std::string& name, T& values) {
  using E = typename T::value_type;
  const auto read = [&values] {
    Tensor copy(kDTypeOf<Stored<E>>, Shape{static_cast<int64_t>(values.size())});
    auto* out = static_cast<Stored<E>*>(copy.mutable_data());
    for (const auto& value : values) *out++ = static_cast<Stored<E>>(static_cast<E>(value));
    return with_marked_emptiness(copy);
  };
  const auto check = [name, &values](const Tensor& saved) {
    check_list(name, saved);
    if constexpr (FixedSequence<T>) check_length(name, saved, values.size());
  };
  const auto assign = [&values](const Tensor& saved) {
    const std::span<const Stored<E>> elements = saved.flat<Stored<E>>();
    if constexpr (FixedSequence<T>) {
      auto out = values.begin();
      for (const auto& element : elements) *out++ = static_cast<E>(element);
    } else {
      T restored;
      for (const auto& element : elements) restored.push_back(static_cast<E>(element));
      values = std::move(restored);
    }
  };
  return {
      .name = name, .dtype = kDTypeOf<Stored<E>>, .read = read, .check = check, .assign = assign, .look = [&values] {
        return look_at(values);
      }};
}

template <Random T>
std::string text_of(const T& random) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << random;
  return text.str();
}

template <Random T>
KeptValue value_of(const std::string& name, T& random) {
  const auto parse = [name](const Tensor& saved) {
    std::istringstream text(saved.flat<std::string>()[0]);
    text.imbue(std::locale::classic());
    T parsed;
    if (!(text >> parsed)) throw_unreadable(name, text.str());
    return parsed;
  };
  const auto check = [name, parse](const Tensor& saved) {
    check_single(name, saved);
    parse(saved);
  };
  const auto look = [&random] {
    if constexpr (std::is_trivially_copyable_v<T>) {
      return hash_of(&random, sizeof(random));
    } else {
      const std::string text = text_of(random);
      return hash_of(text.data(), text.size());
    }
  };
  return {.name = name,
          .dtype = kString,
          .read = [&random] { return Tensor::scalar(text_of(random)); },
          .check = check,
          .assign = [&random, parse](const Tensor& saved) { random = parse(saved); },
          .look = look,
          .is_short = true};
}

// As a list of one element, or none.
template <Element T>
KeptValue value_of(const std::string& name, std::optional<T>& value) {
  const auto read = [&value] {
    std::vector<Stored<T>> elements;
    if (value) elements.push_back(static_cast<Stored<T>>(*value));
    return with_marked_emptiness(Tensor::of(Shape{value ? 1 : 0}, elements));
  };
  const auto check = [name](const Tensor& saved) {
    check_list(name, saved);
    if (!is_empty(saved)) check_length(name, saved, 1);
  };
  const auto assign = [&value](const Tensor& saved) {
    value.reset();
    if (!is_empty(saved)) value = static_cast<T>(saved.flat<Stored<T>>()[0]);
  };
  const auto look = [read] {
    const Tensor now = read();
    if constexpr (std::is_same_v<T, std::string>) {
      return is_empty(now) ? 0 : hash_of(now.flat<std::string>()[0].data(), now.flat<std::string>()[0].size());
    } else {
      return is_empty(now) ? 0 : hash_of(now.data(), now.size_bytes());
    }
  };
  return {.name = name, .dtype = kDTypeOf<Stored<T>>, .read = read, .check = check, .assign = assign, .look = look};
}

KeptValue value_of(const std::string& name, at::Tensor& tensor);
KeptValue value_of(const std::string& name, at::Generator& generator);

template <typename T>
concept Value = requires(const std::string& name, T& value) { kept::value_of(name, value); };

}  // namespace kept

// Values of a program that belong in its checkpoints, each in one line:
//
//   int64_t episodes = 0;
//   std::vector<double> recent;
//   std::mt19937 dice(7);
//   torch::Tensor position = torch::zeros({3}), goal = torch::ones({3});
//   TorchTrainingOptions options;
//   options.kept.keep("episodes", episodes).keep("recent", recent).keep("dice", dice).keep("env", position, goal);
//
// Kept are integers, floating-point numbers, bool and enums; std::string; std::vector, std::deque and std::array of
// these, and std::optional; standard random number engines and distributions; at::Tensor of any shape, and
// at::Generator; and objects with a member function keep_in(KeptValues&, const std::string& name), which keeps what
// they consist of, such as ModuleAverage and LossScale:
//
//   struct Env {
//     double angle = 0;
//     int64_t turns = 0;
//     void keep_in(KeptValues& kept, const std::string& name) { kept.keep(name, angle, turns); }
//   };
//
// One value is in checkpoints as "kept/episodes", several of one name are "kept/env/0", "kept/env/1". A checkpoint that
// lacks one is restored with a warning, and the program's value stays. Another dtype, or another shape where the shape
// is fixed, is an InvalidArgumentError that names it, before anything is changed.
//
// The values are borrowed, and stay where they are until the last save. A bound program changes them in its step
// function only: a checkpoint then has them of the same moment as the weights. A change between two steps is named.
class KeptValues {
 public:
  // AlreadyExistsError: the name is taken. InvalidArgumentError: the name is empty; a tensor is undefined, or of a
  // dtype that checkpoints lack.
  template <typename... T>
  KeptValues& keep(const std::string& name, T&... values) & {
    static_assert(sizeof...(T) > 0, "keep(name, value) takes the value to keep, or several");
    if constexpr (sizeof...(T) == 1) {
      (add(name, values), ...);
    } else {
      size_t number = 0;
      (add(name + "/" + std::to_string(number++), values), ...);
    }
    return *this;
  }
  template <typename... T>
  KeptValues&& keep(const std::string& name, T&... values) && {
    return std::move(keep(name, values...));
  }
  void add(KeptValue value);

  const std::vector<KeptValue>& values() const { return values_; }

  // Adds them to a graph without a bound program; there they change in operations that write variables, if at all. Use
  // TorchTrainingOptions::kept with a bound one.
  void add_to(const Scope& scope) const;

 private:
  template <typename T>
  void add(const std::string& name, T& value) {
    static_assert(!std::is_const_v<T>, "a constant cannot be restored, and need not be: keep what changes");
    if constexpr (kept::Composite<T>) {
      value.keep_in(*this, name);
    } else {
      static_assert(kept::Value<T>,
                    "this type cannot be kept: give it a member void keep_in(lh::KeptValues& kept, const std::string& "
                    "name) { kept.keep(name, ...its members...); }");
      add(kept::value_of(name, value));
    }
  }

  std::vector<KeptValue> values_;
};

}  // namespace longhaul
