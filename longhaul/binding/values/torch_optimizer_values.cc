#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <type_traits>
#include <typeinfo>
#include <unordered_set>

#include "longhaul/binding/values/described_optimizer.h"
#include "longhaul/binding/values/optimizer_state.h"
#include "longhaul/binding/values/torch_values.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

using torch::optim::Optimizer;

// A tensor that an optimizer has for a parameter, from the first step on if its options ask for it.
template <typename Options, typename State>
struct KeptTensor {
  const char* name;
  at::Tensor& (*field)(State&);
  bool (*is_kept)(Options&) = [](Options&) { return true; };
};

// What a kind of optimizer keeps: the fields of its options, and those of what it has for a parameter from the first
// step on. That exists where its first tensor does.
template <typename Options, typename State>
struct Kind {
  std::vector<std::pair<const char*, double& (*)(Options&)>> numbers;
  std::vector<std::pair<const char*, bool& (*)(Options&)>> switches;
  std::vector<KeptTensor<Options, State>> tensors;
  int64_t& (*step)(State&) = nullptr;
};

template <typename State>
TorchValue state_tensor(std::string name, const StateOf<State>& state, at::Tensor& (*field)(State&), bool is_first,
                        bool is_kept) {
  const at::Tensor& parameter = state.parameter();
  TorchValue value{.name = std::move(name), .dtype = dtype_of(parameter.scalar_type()), .shape = Shape::unknown_rank()};
  value.expected = is_kept ? shape_of(parameter) : Shape{0};
  const auto find = [state, field, name = value.name]() -> at::Tensor {
    State* found = state.find();
    if (found == nullptr || !field(*found).defined()) return {};
    check_can_be_kept(name, field(*found));
    return field(*found);
  };
  CopyBuffer::read_by(value, find, parameter.scalar_type());
  value.assign = [state, field, is_first, name = value.name](const at::Tensor& assigned) {
    if (!is_absent(assigned, state.parameter())) {
      check_like(name, assigned, state.parameter());
      field(state.find_or_make()) = at::empty_like(state.parameter()).copy_(assigned);
    } else if (is_first) {
      state.erase();
    } else if (State* found = state.find()) {
      field(*found).reset();
    }
  };
  return value;
}

// A number that a function finds, or nothing, which is saved as 0; `make` is asked when something else is restored.
template <typename T>
TorchValue number_value(std::string name, const std::function<T*(bool make)>& find) {
  const auto read = [find] {
    const T* found = find(/*make=*/false);
    return at::scalar_tensor(found != nullptr ? *found : T{}, at::TensorOptions(c10::CppTypeToScalarType<T>::value));
  };
  const auto assign = [find](const at::Tensor& assigned) {
    const T number = assigned.item<T>();
    if (T* found = find(/*make=*/number != T{})) *found = number;
  };
  return {.name = std::move(name), .dtype = kDTypeOf<T>, .shape = {}, .read = read, .assign = assign};
}

template <typename Options, typename T>
TorchValue option_value(std::string name, Optimizer& optimizer, size_t group, T& (*field)(Options&)) {
  return number_value<T>(std::move(name), [&optimizer, group, field](bool) {
    return &field(static_cast<Options&>(optimizer.param_groups().at(group).options()));
  });
}

template <typename State>
TorchValue step_value(std::string name, const StateOf<State>& state, int64_t& (*field)(State&)) {
  return number_value<int64_t>(std::move(name), [state, field](bool make) -> int64_t* {
    State* found = make ? &state.find_or_make() : state.find();
    return found != nullptr ? &field(*found) : nullptr;
  });
}

using NamedParameters = torch::OrderedDict<std::string, at::Tensor>;

std::string name_of(const at::Tensor& parameter, const NamedParameters& named_parameters) {
  for (const auto& named : named_parameters) {
    if (named.value().is_same(parameter)) return named.key();
  }
  throw InvalidArgumentError(
      fmt::format("the optimizer has a parameter of shape {} that does not belong to the module. Register it in the "
                  "module, or in one that contains both",
                  shape_of(parameter).to_string()));
}

template <typename Options, typename State>
std::vector<TorchValue> values_of(const Kind<Options, State>& kind, Optimizer& optimizer,
                                  const NamedParameters& named_parameters) {
  std::vector<TorchValue> values;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const std::string prefix = fmt::format("group_{}/", group);
    Options& options = static_cast<Options&>(optimizer.param_groups()[group].options());
    for (const auto& [name, field] : kind.numbers)
      values.push_back(option_value(prefix + name, optimizer, group, field));
    for (const auto& [name, field] : kind.switches)
      values.push_back(option_value(prefix + name, optimizer, group, field));
    for (const at::Tensor& parameter : optimizer.param_groups()[group].params()) {
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
      const StateOf<State> state(optimizer, parameter);
      const std::string of = name_of(parameter, named_parameters) + "/";
      for (const auto& kept : kind.tensors) {
        values.push_back(state_tensor(of + kept.name, state, kept.field, /*is_first=*/&kept == &kind.tensors.front(),
                                      kept.is_kept(options)));
      }
      if (kind.step != nullptr) values.push_back(step_value(of + "step", state, kind.step));
    }
  }
  return values;
}

torch::optim::OptimizerOptions& options_for(Optimizer& optimizer, const at::Tensor& parameter) {
  for (auto& group : optimizer.param_groups()) {
    const auto& own = group.params();
    if (std::any_of(own.begin(), own.end(), [&](auto& tensor) { return tensor.is_same(parameter); }))
      return group.options();
  }
  return optimizer.defaults();
}

template <typename Options, typename State>
std::optional<uint64_t> count_of(const Kind<Options, State>& kind, Optimizer& optimizer, const at::Tensor& parameter) {
  const auto& kept = kind.tensors.front();
  if (!kept.is_kept(static_cast<Options&>(options_for(optimizer, parameter)))) return std::nullopt;
  State* state = StateOf<State>(optimizer, parameter).find();
  if (state == nullptr) return 0;
  if (kind.step != nullptr) return static_cast<uint64_t>(kind.step(*state));
  const at::Tensor& tensor = kept.field(*state);
  return tensor.defined() ? 1 + tensor.unsafeGetTensorImpl()->version_counter().current_version() : 0;
}

Kind<torch::optim::SGDOptions, torch::optim::SGDParamState> sgd() {
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;
  return {.numbers = {{"lr", [](Options& o) -> double& { return o.lr(); }},
                      {"momentum", [](Options& o) -> double& { return o.momentum(); }},
                      {"dampening", [](Options& o) -> double& { return o.dampening(); }},
                      {"weight_decay", [](Options& o) -> double& { return o.weight_decay(); }}},
          .switches = {{"nesterov", [](Options& o) -> bool& { return o.nesterov(); }}},
          .tensors = {{"momentum_buffer", [](State& s) -> at::Tensor& { return s.momentum_buffer(); },
                       [](Options& o) { return o.momentum() != 0; }}}};
}

// Adam, and AdamW, which has types of its own that say the same.
template <typename Options, typename State>
Kind<Options, State> adam() {
  return {.numbers = {{"lr", [](Options& o) -> double& { return o.lr(); }},
                      {"beta1", [](Options& o) -> double& { return std::get<0>(o.betas()); }},
                      {"beta2", [](Options& o) -> double& { return std::get<1>(o.betas()); }},
                      {"eps", [](Options& o) -> double& { return o.eps(); }},
                      {"weight_decay", [](Options& o) -> double& { return o.weight_decay(); }}},
          .switches = {{"amsgrad", [](Options& o) -> bool& { return o.amsgrad(); }}},
          .tensors = {{"exp_avg", [](State& s) -> at::Tensor& { return s.exp_avg(); }},
                      {"exp_avg_sq", [](State& s) -> at::Tensor& { return s.exp_avg_sq(); }},
                      {"max_exp_avg_sq", [](State& s) -> at::Tensor& { return s.max_exp_avg_sq(); },
                       [](Options& o) { return o.amsgrad(); }}},
          .step = [](State& s) -> int64_t& { return s.step(); }};
}

Kind<torch::optim::RMSpropOptions, torch::optim::RMSpropParamState> rmsprop() {
  using Options = torch::optim::RMSpropOptions;
  using State = torch::optim::RMSpropParamState;
  return {.numbers = {{"lr", [](Options& o) -> double& { return o.lr(); }},
                      {"alpha", [](Options& o) -> double& { return o.alpha(); }},
                      {"eps", [](Options& o) -> double& { return o.eps(); }},
                      {"weight_decay", [](Options& o) -> double& { return o.weight_decay(); }},
                      {"momentum", [](Options& o) -> double& { return o.momentum(); }}},
          .switches = {{"centered", [](Options& o) -> bool& { return o.centered(); }}},
          .tensors = {{"square_avg", [](State& s) -> at::Tensor& { return s.square_avg(); }},
                      {"momentum_buffer", [](State& s) -> at::Tensor& { return s.momentum_buffer(); },
                       [](Options& o) { return o.momentum() > 0; }},
                      {"grad_avg", [](State& s) -> at::Tensor& { return s.grad_avg(); },
                       [](Options& o) { return o.centered(); }}},
          .step = [](State& s) -> int64_t& { return s.step(); }};
}

Kind<torch::optim::AdagradOptions, torch::optim::AdagradParamState> adagrad() {
  using Options = torch::optim::AdagradOptions;
  using State = torch::optim::AdagradParamState;
  return {
      .numbers = {{"lr", [](Options& o) -> double& { return o.lr(); }},
                  {"lr_decay", [](Options& o) -> double& { return o.lr_decay(); }},
                  {"weight_decay", [](Options& o) -> double& { return o.weight_decay(); }},
                  {"initial_accumulator_value", [](Options& o) -> double& { return o.initial_accumulator_value(); }},
                  {"eps", [](Options& o) -> double& { return o.eps(); }}},
      .switches = {},
      .tensors = {{"sum", [](State& s) -> at::Tensor& { return s.sum(); }}},
      .step = [](State& s) -> int64_t& { return s.step(); }};
}

struct KnownOptimizer {
  const std::type_info& type;
  const char* name;
  std::vector<TorchValue> (*values)(Optimizer&, const NamedParameters&);
  std::optional<uint64_t> (*count)(Optimizer&, const at::Tensor&);
};

template <typename Type, auto kind>
KnownOptimizer known(const char* name) {
  return {typeid(Type), name, [](Optimizer& optimizer, auto& names) { return values_of(kind(), optimizer, names); },
          [](Optimizer& optimizer, auto& parameter) { return count_of(kind(), optimizer, parameter); }};
}

// nullptr: another kind. A class that is derived from a known one may keep more, so it is not taken for that.
const KnownOptimizer* find_kind(const Optimizer& optimizer) {
  using namespace torch::optim;
  static const KnownOptimizer kKnown[] = {known<SGD, sgd>("SGD"),
                                          known<Adam, adam<AdamOptions, AdamParamState>>("Adam"),
                                          known<AdamW, adam<AdamWOptions, AdamWParamState>>("AdamW"),
                                          known<RMSprop, rmsprop>("RMSprop"), known<Adagrad, adagrad>("Adagrad")};
  for (const KnownOptimizer& known : kKnown) {
    if (known.type == typeid(optimizer)) return &known;
  }
  return nullptr;
}

// Gives access to what the schedulers keep.
struct StepCount : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) { return scheduler.*&StepCount::step_count_; }
};

}  // namespace

std::string optimizer_kind(const Optimizer& optimizer) {
  if (const KnownOptimizer* kind = find_kind(optimizer)) return kind->name;
  const auto described = find_description(optimizer);
  return described ? described->name : c10::demangle(typeid(optimizer).name());
}

std::vector<TorchValue> optimizer_values(Optimizer& optimizer, const torch::nn::Module& module) {
  if (const KnownOptimizer* kind = find_kind(optimizer)) return kind->values(optimizer, module.named_parameters());
  if (const auto described = find_description(optimizer)) return described_values(described, optimizer, module);
  throw InvalidArgumentError(
      fmt::format("optimizers of type {} are not known: only SGD, Adam, AdamW, RMSprop, Adagrad and LBFGS are. Call "
                  "register_optimizer() before torch_training() or the Trainer, with an OptimizerKind that lists what "
                  "this one keeps",
                  optimizer_kind(optimizer)));
}

std::optional<uint64_t> update_count(Optimizer& optimizer, const at::Tensor& parameter) {
  if (const KnownOptimizer* kind = find_kind(optimizer)) return kind->count(optimizer, parameter);
  const auto described = find_description(optimizer);
  return described ? described_count(*described, optimizer, parameter) : std::nullopt;
}

std::vector<size_t> group_sizes(const Optimizer& optimizer) {
  std::vector<size_t> sizes;
  for (const auto& group : optimizer.param_groups()) sizes.push_back(group.params().size());
  return sizes;
}

bool has_groups(const Optimizer& optimizer, const std::vector<size_t>& sizes) {
  const auto& groups = optimizer.param_groups();
  return std::equal(groups.begin(), groups.end(), sizes.begin(), sizes.end(),
                    [](const auto& group, size_t size) { return group.params().size() == size; });
}

std::string parameter_name(const at::Tensor& parameter, const torch::nn::Module& module) {
  return name_of(parameter, module.named_parameters());
}

int64_t step_count(torch::optim::LRScheduler& scheduler) {
  return StepCount::of(scheduler);
}

TorchValue scheduler_value(std::string name, torch::optim::LRScheduler& scheduler) {
  const auto read = [&scheduler] { return at::scalar_tensor(step_count(scheduler), at::kLong); };
  const auto assign = [&scheduler](const at::Tensor& count) {
    if (count.numel() == 1) StepCount::of(scheduler) = static_cast<unsigned>(count.item<int64_t>());
  };
  return {.name = std::move(name),
          .dtype = kInt64,
          .shape = Shape::unknown_rank(),
          .expected = Shape{},
          .read = read,
          .assign = assign};
}

}  // namespace longhaul
