#pragma once

#include <utility>
#include <variant>

namespace longhaul {

struct UseDefault {
  bool operator==(const UseDefault&) const = default;
};
struct None {
  bool operator==(const None&) const = default;
};
inline constexpr UseDefault kUseDefault{};
inline constexpr None kNone{};

// An option with three states: left to the library (kUseDefault), switched off (kNone), or a value (a T). Most
// parameters of TensorFlow's Supervisor have them: USE_DEFAULT, None and a value.
template <typename T>
class Defaulted {
 public:
  Defaulted(UseDefault = kUseDefault) {}
  Defaulted(None) : value_(kNone) {}
  Defaulted(T value) : value_(std::move(value)) {}
  template <typename U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::decay_t<U>, Defaulted>)
  Defaulted(U&& value) : value_(T(std::forward<U>(value))) {}

  bool is_default() const { return std::holds_alternative<UseDefault>(value_); }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  bool has_value() const { return std::holds_alternative<T>(value_); }
  const T& value() const { return std::get<T>(value_); }

 private:
  std::variant<UseDefault, None, T> value_;
};

}  // namespace longhaul
