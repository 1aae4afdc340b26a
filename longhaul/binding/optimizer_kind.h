#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <concepts>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
class OptimizerParamState;
}  // namespace torch::optim

namespace longhaul {

// Type-erased description of what a checkpoint stores for an optimizer class. OptimizerKind makes one.
struct OptimizerDescription {
  template <typename Owner>
  struct Number {
    std::string name;
    at::ScalarType dtype;
    std::function<at::Scalar(Owner&)> get;
    std::function<void(Owner&, const at::Scalar&)> set;
  };
  template <typename Owner>
  struct Tensors {
    std::string name;
    std::optional<at::ScalarType> dtype;  // nullopt: the parameter's; float for own_tensors
    bool is_list;                         // saved as one tensor with a row for each; false: exactly one tensor
    std::function<std::vector<at::Tensor>(Owner&)> get;
    std::function<void(Owner&, std::vector<at::Tensor>)> set;
  };

  std::string name;
  const std::type_info* type;
  bool state_is_shared = false;                                 // one state, stored under the first parameter
  std::vector<Number<torch::optim::OptimizerOptions>> options;  // of each parameter group
  std::vector<Number<torch::optim::OptimizerParamState>> numbers;
  std::vector<Tensors<torch::optim::OptimizerParamState>> tensors;
  std::vector<Number<torch::optim::Optimizer>> own_numbers;
  std::vector<Tensors<torch::optim::Optimizer>> own_tensors;
  std::function<torch::optim::OptimizerParamState*()> make_state;  // the caller owns it
  std::function<bool(torch::optim::OptimizerOptions&)> fits_options;
  std::function<bool(torch::optim::OptimizerParamState&)> fits_state;
};

// Lists what an optimizer class of the program keeps, so that torch_training() accepts it and checkpoints have it. SGD,
// Adam, AdamW, RMSprop, Adagrad and LBFGS are known without that.
//
//   lh::register_optimizer(lh::OptimizerKind<Lion, LionOptions, LionState>("Lion")
//                              .option("lr", &LionOptions::lr)
//                              .option("weight_decay", &LionOptions::weight_decay)
//                              .tensor("momentum", &LionState::momentum)
//                              .number("step", &LionState::step));
//
// A field is an accessor made by TORCH_ARG, a data member, or a function that takes the owner and returns a reference:
// [](Options& options) -> double& { return std::get<0>(options.betas()); }. Numbers are double, float, int64_t, int32_t
// or bool. Names are those in checkpoints: "Lion/0.weight/momentum", "Lion/group_0/lr", "Lion/own/steps".
//
// List every field that a step reads and changes. One that is left out starts anew at each restart, and nothing can
// detect that. An optimizer that is wrapped by another one is bound with it.
template <typename Optimizer, typename Options, typename State = torch::optim::OptimizerParamState>
class OptimizerKind {
 public:
  explicit OptimizerKind(std::string name) {
    description_.name = std::move(name);
    description_.type = &typeid(Optimizer);
    description_.make_state = []() -> torch::optim::OptimizerParamState* { return new State(); };
    description_.fits_options = [](auto& options) { return is_a<Options>(&options); };
    description_.fits_state = [](auto& state) { return is_a<State>(&state); };
  }

  // A number of each parameter group: a rate, a decay, a switch. A restore overwrites it with the checkpoint's value.
  template <typename T>
  OptimizerKind& option(std::string name, T& (Options::*field)()) {
    return option(std::move(name), [field](Options& options) -> T& { return (options.*field)(); });
  }
  template <std::invocable<Options&> Field>
  OptimizerKind& option(std::string name, Field field) {
    description_.options.push_back(number_of<torch::optim::OptimizerOptions, Options>(std::move(name), field));
    return *this;
  }

  // A number that is kept for each parameter.
  template <typename T>
  OptimizerKind& number(std::string name, T& (State::*field)()) {
    return number(std::move(name), [field](State& state) -> T& { return (state.*field)(); });
  }
  template <std::invocable<State&> Field>
  OptimizerKind& number(std::string name, Field field) {
    description_.numbers.push_back(number_of<torch::optim::OptimizerParamState, State>(std::move(name), field));
    return *this;
  }

  // A tensor that is kept for each parameter, of any shape; an undefined one stays undefined. Its dtype is the
  // parameter's, unless one is given. FailedPreconditionError, at a save: the tensor has another dtype.
  OptimizerKind& tensor(std::string name, at::Tensor& (State::*field)(),
                        std::optional<at::ScalarType> dtype = std::nullopt) {
    return tensor(std::move(name), [field](State& state) -> at::Tensor& { return (state.*field)(); }, dtype);
  }
  template <std::invocable<State&> Field>
  OptimizerKind& tensor(std::string name, Field field, std::optional<at::ScalarType> dtype = std::nullopt) {
    description_.tensors.push_back(
        tensor_of<torch::optim::OptimizerParamState, State>(std::move(name), std::move(field), dtype));
    return *this;
  }

  // A std::vector or std::deque of tensors that is kept for each parameter, saved as one tensor with a row for each. It
  // may be empty. If the shapes differ, saves fail with libtorch's error. The dtype is as for tensor().
  template <typename List>
  OptimizerKind& tensors(std::string name, List& (State::*field)(),
                         std::optional<at::ScalarType> dtype = std::nullopt) {
    return tensors(std::move(name), [field](State& state) -> List& { return (state.*field)(); }, dtype);
  }
  template <std::invocable<State&> Field>
  OptimizerKind& tensors(std::string name, Field field, std::optional<at::ScalarType> dtype = std::nullopt) {
    using List = std::remove_reference_t<std::invoke_result_t<Field&, State&>>;
    description_.tensors.push_back({std::move(name), dtype, /*is_list=*/true,
                                    [field](torch::optim::OptimizerParamState& state) {
                                      List& list = std::invoke(field, cast<State>(state));
                                      return std::vector<at::Tensor>(list.begin(), list.end());
                                    },
                                    [field](torch::optim::OptimizerParamState& state, std::vector<at::Tensor> values) {
                                      std::invoke(field, cast<State>(state)) = List(values.begin(), values.end());
                                    }});
    return *this;
  }

  // State of the optimizer object itself: "Lookahead/own/steps". A tensor is as for tensor(), but float by default.
  template <std::invocable<Optimizer&> Field>
  OptimizerKind& own_number(std::string name, Field field) {
    description_.own_numbers.push_back(number_of<torch::optim::Optimizer, Optimizer>(std::move(name), field));
    return *this;
  }
  template <std::invocable<Optimizer&> Field>
  OptimizerKind& own_tensor(std::string name, Field field, std::optional<at::ScalarType> dtype = std::nullopt) {
    description_.own_tensors.push_back(
        tensor_of<torch::optim::Optimizer, Optimizer>(std::move(name), std::move(field), dtype));
    return *this;
  }

  // The optimizer keeps one state for all parameters, under the first one, as LBFGS does.
  OptimizerKind& shares_state() {
    description_.state_is_shared = true;
    return *this;
  }

  const OptimizerDescription& description() const { return description_; }

 private:
  template <typename To, typename From>
  static bool is_a(From* from) {
    return dynamic_cast<To*>(from) != nullptr;
  }
  // A static_cast if the two are different, as they are unless there is no state.
  template <typename To, typename From>
  static To& cast(From& from) {
    return static_cast<To&>(from);
  }
  template <typename Base, typename Owner, typename Field>
  static OptimizerDescription::Number<Base> number_of(std::string name, Field field) {
    using Reference = std::invoke_result_t<Field&, Owner&>;
    using T = std::remove_reference_t<Reference>;
    static_assert(std::is_lvalue_reference_v<Reference> && !std::is_const_v<T>,
                  "the function returns a reference to the number: [](Options& options) -> double& { ... }");
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, int64_t> ||
                      std::is_same_v<T, int32_t> || std::is_same_v<T, bool>,
                  "an optimizer's numbers in checkpoints are double, float, int64_t, int32_t or bool");
    return {
        std::move(name), c10::CppTypeToScalarType<T>::value,
        [field](Base& owner) { return at::Scalar(std::invoke(field, cast<Owner>(owner))); },
        [field](Base& owner, const at::Scalar& number) { std::invoke(field, cast<Owner>(owner)) = number.to<T>(); }};
  }
  template <typename Base, typename Owner, typename Field>
  static OptimizerDescription::Tensors<Base> tensor_of(std::string name, Field field,
                                                       std::optional<at::ScalarType> dtype) {
    static_assert(std::is_same_v<std::invoke_result_t<Field&, Owner&>, at::Tensor&>,
                  "the function returns a reference to the tensor: [](State& state) -> at::Tensor& { ... }");
    return {std::move(name), dtype, /*is_list=*/false,
            [field](Base& owner) { return std::vector<at::Tensor>{std::invoke(field, cast<Owner>(owner))}; },
            [field](Base& owner, std::vector<at::Tensor> values) {
              std::invoke(field, cast<Owner>(owner)) = std::move(values.at(0));
            }};
  }

  OptimizerDescription description_;
};

// Makes the class known to the process. Call it before torch_training(); any thread. A second registration of a class
// replaces the first. AlreadyExistsError: another class has the name, or the class is one of libtorch's that are known.
// InvalidArgumentError: the name is empty, or a field has no name or that of another one.
void register_optimizer(OptimizerDescription description);
template <typename Optimizer, typename Options, typename State>
void register_optimizer(const OptimizerKind<Optimizer, Options, State>& kind) {
  register_optimizer(kind.description());
}

}  // namespace longhaul
