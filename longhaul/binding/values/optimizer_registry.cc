#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <typeindex>

#include "longhaul/base/error.h"
#include "longhaul/binding/optimizer_kind.h"
#include "longhaul/binding/values/described_optimizer.h"

namespace longhaul {
namespace {

// What LBFGS keeps for all parameters, under the first. Not `al`, which each step writes before it reads it; it is made
// anew after a restore, which may bring a longer history than it has room for. The
// initial `H_diag` is the integer 1, which multiplies like 1.0. libtorch 1.13 leaves `t` and `prev_loss` unset until
// the first iteration.
OptimizerDescription lbfgs() {
  using Options = torch::optim::LBFGSOptions;
  using State = torch::optim::LBFGSParamState;
  const auto max_eval = [](Options& o) -> int64_t& {
    if (!o.max_eval()) o.max_eval(o.max_iter() * 5 / 4);  // as its constructor does
    return *o.max_eval();
  };
  const auto diagonal = [](State& s) -> at::Tensor& {
    if (s.H_diag().defined() && s.d().defined()) s.H_diag(s.H_diag().to(s.d().scalar_type()));
    return s.H_diag();
  };
  const auto directions = [](State& s) -> std::deque<at::Tensor>& {
    s.al(c10::nullopt);
    return s.old_dirs();
  };
  const auto once_set = [](double& (State::*field)()) {
    return [field](State& s) -> double& {
      if (s.n_iter() == 0) (s.*field)() = 0;
      return (s.*field)();
    };
  };
  return OptimizerKind<torch::optim::LBFGS, Options, State>("LBFGS")
      .shares_state()
      .option("lr", &Options::lr)
      .option("max_iter", &Options::max_iter)
      .option("max_eval", max_eval)
      .option("tolerance_grad", &Options::tolerance_grad)
      .option("tolerance_change", &Options::tolerance_change)
      .option("history_size", &Options::history_size)
      .number("func_evals", &State::func_evals)
      .number("n_iter", &State::n_iter)
      .number("t", once_set(&State::t))
      .number("prev_loss", once_set(&State::prev_loss))
      .tensor("d", &State::d)
      .tensor("H_diag", diagonal)
      .tensor("prev_flat_grad", &State::prev_flat_grad)
      .tensors("old_dirs", directions)
      .tensors("old_stps", &State::old_stps)
      .tensors("ro", &State::ro)
      .description();
}

bool is_known(const OptimizerDescription& description) {
  using namespace torch::optim;
  for (const std::type_info* known :
       {&typeid(SGD), &typeid(Adam), &typeid(AdamW), &typeid(RMSprop), &typeid(Adagrad), &typeid(LBFGS)}) {
    if (*known == *description.type) return true;
  }
  return false;
}

bool is_known(const std::string& name) {
  static const std::set<std::string> kNames{"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"};
  return kNames.contains(name);
}

template <typename Fields>
void check_names(const std::string& optimizer, const Fields& fields, std::set<std::string>* names) {
  for (const auto& field : fields) {
    if (field.name.empty() || field.name.find('/') != std::string::npos) {
      throw InvalidArgumentError(
          fmt::format("a field of the optimizer kind {} is named '{}': its name in checkpoints "
                      "must not be empty, and must have no '/'",
                      optimizer, field.name));
    }
    if (names->insert(field.name).second) continue;
    throw InvalidArgumentError(fmt::format(
        "the optimizer kind {} has two fields named {}: each is in checkpoints by its name", optimizer, field.name));
  }
}

// What is kept for a parameter and what the optimizer has for itself are in different places.
void check_fields(const OptimizerDescription& description) {
  if (description.name.empty()) throw InvalidArgumentError("an optimizer kind needs a name, for checkpoints");
  std::set<std::string> options, state, own;
  check_names(description.name, description.options, &options);
  check_names(description.name, description.numbers, &state);
  check_names(description.name, description.tensors, &state);
  check_names(description.name, description.own_numbers, &own);
  check_names(description.name, description.own_tensors, &own);
}

struct Registry {
  std::mutex mutex;
  std::map<std::type_index, std::shared_ptr<const OptimizerDescription>> kinds;  // guarded by the mutex

  static Registry& get() {
    static auto* registry = [] {
      auto* made = new Registry;
      made->kinds[typeid(torch::optim::LBFGS)] = std::make_shared<OptimizerDescription>(lbfgs());
      return made;
    }();
    return *registry;
  }
};

}  // namespace

void register_optimizer(OptimizerDescription description) {
  check_fields(description);
  if (is_known(description)) {
    throw AlreadyExistsError(
        fmt::format("{} cannot be registered: its class is one of libtorch's that are known", description.name));
  }
  Registry& registry = Registry::get();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  for (const auto& [type, other] : registry.kinds) {
    if (type == *description.type || other->name != description.name) continue;
    throw AlreadyExistsError(fmt::format(
        "another class of optimizers is registered as {}: register this one under another name", description.name));
  }
  if (is_known(description.name)) {
    throw AlreadyExistsError(fmt::format(
        "{} is libtorch's optimizer: register a class of the program under another name", description.name));
  }
  const std::type_index type = *description.type;
  registry.kinds[type] = std::make_shared<OptimizerDescription>(std::move(description));
}

std::shared_ptr<const OptimizerDescription> find_description(const torch::optim::Optimizer& optimizer) {
  Registry& registry = Registry::get();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.kinds.find(typeid(optimizer));
  return found == registry.kinds.end() ? nullptr : found->second;
}

}  // namespace longhaul
