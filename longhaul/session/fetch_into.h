#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

template <typename Struct, size_t kCount>
constexpr bool is_made_of_tensors() {
  return []<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return requires(std::vector<Tensor> values) { Struct{std::move(values[kIndex])...}; };
  }(std::make_index_sequence<kCount>());
}

// A struct of Tensors, possibly nested, with exactly one member for each fetch.
template <typename Struct, size_t kFetches>
concept HoldsFetches = std::is_aggregate_v<Struct> && is_made_of_tensors<Struct, kFetches>() &&
                       !is_made_of_tensors<Struct, kFetches + 1>();

// A Callable whose results are the members of a struct, in the order of the fetches. May be copied.
template <typename Struct, size_t kFetches>
  requires HoldsFetches<Struct, kFetches>
class CallableInto {
 public:
  explicit CallableInto(Callable callable) : callable_(std::move(callable)) {}

  // Takes one argument for each named feed, and throws what Callable throws: InvalidArgumentError for a wrong number of
  // arguments, or one whose dtype or shape does not fit; FailedPreconditionError once the session is closed or
  // destroyed; the errors of the operations. Any thread may call.
  template <typename... Ts>
    requires(std::is_convertible_v<const Ts&, const Tensor&> && ...)
  Struct operator()(const Ts&... feeds) const {
    return [&]<size_t... kIndex>(std::vector<Tensor> values, std::index_sequence<kIndex...>) {
      return Struct{std::move(values[kIndex])...};
    }(callable_(feeds...), std::make_index_sequence<kFetches>());
  }

 private:
  Callable callable_;
};

// Session::make_callable() with named results. The member of an operation is an undefined Tensor. Throws what
// make_callable() throws: NotFoundError or InvalidArgumentError for a fetch or feed that does not fit the graph.
//
//   struct Outcome { Tensor loss, accuracy; };
//   const auto evaluate = make_callable_into<Outcome>(session, {images, labels}, loss, accuracy);
//   const float mean_loss = evaluate(batch[0], batch[1]).loss.item<float>();
template <typename Struct, std::convertible_to<Fetch>... Fetches>
  requires HoldsFetches<Struct, sizeof...(Fetches)>
CallableInto<Struct, sizeof...(Fetches)> make_callable_into(Session& session, const std::vector<Fetch>& feeds,
                                                            const Fetches&... fetches) {
  return CallableInto<Struct, sizeof...(Fetches)>(session.make_callable(std::vector<Fetch>{Fetch(fetches)...}, feeds));
}

}  // namespace longhaul
