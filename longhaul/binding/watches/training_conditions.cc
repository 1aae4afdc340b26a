#include "longhaul/binding/watches/training_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/schedulers/step_lr.h>

#include <cmath>
#include <cstring>
#include <locale>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "longhaul/binding/watches/private_member.h"

namespace longhaul {
namespace {

using torch::nn::Module;

template <typename Dropout>
std::function<double()> rate_of(const Module& module) {
  const auto* dropout = dynamic_cast<const Dropout*>(&module);
  if (dropout == nullptr) return nullptr;
  return [dropout] { return dropout->options.p(); };
}

template <typename Recurrent>
std::function<double()> recurrent_rate_of(const Module& module) {
  const auto* recurrent = dynamic_cast<const Recurrent*>(&module);
  if (recurrent == nullptr) return nullptr;
  return [recurrent] { return recurrent->options_base.dropout(); };
}

std::function<double()> attention_rate_of(const Module& module) {
  const auto* attention = dynamic_cast<const torch::nn::MultiheadAttentionImpl*>(&module);
  if (attention == nullptr) return nullptr;
  return [attention] { return attention->options.dropout(); };
}

// nullptr: it has none.
std::function<double()> dropout_rate_of(const Module& module) {
  using namespace torch::nn;
  for (const auto find : {rate_of<DropoutImpl>, rate_of<Dropout2dImpl>, rate_of<Dropout3dImpl>,
                          rate_of<AlphaDropoutImpl>, rate_of<FeatureAlphaDropoutImpl>, recurrent_rate_of<LSTMImpl>,
                          recurrent_rate_of<GRUImpl>, recurrent_rate_of<RNNImpl>, attention_rate_of}) {
    if (auto read = find(module)) return read;
  }
  return nullptr;
}

}  // namespace

struct StepSizeMember {
  using Member = const unsigned torch::optim::StepLR::*;
  friend Member member_of(StepSizeMember);
};
struct GammaMember {
  using Member = const double torch::optim::StepLR::*;
  friend Member member_of(GammaMember);
};
template struct PrivateMember<StepSizeMember, &torch::optim::StepLR::step_size_>;
template struct PrivateMember<GammaMember, &torch::optim::StepLR::gamma_>;

namespace {

std::string text_of(double value, bool is_switch) {
  if (is_switch) return value != 0 ? "true" : "false";
  return fmt::format("{}", value);
}

std::string list_of(std::vector<std::string> changes) {
  constexpr size_t kMostLines = 20;  // and a line before them
  if (changes.empty()) return "";
  if (changes.size() >= kMostLines) {
    const size_t more = changes.size() - (kMostLines - 2);
    changes.resize(kMostLines - 2);
    changes.push_back(fmt::format("and {} more", more));
  }
  return fmt::format(
      "the first step after the restore differs from the last step before it in settings that no checkpoint restores. "
      "Set them from the step number, or before the session:\n  {}",
      fmt::join(changes, "\n  "));
}

}  // namespace

TrainingConditions::TrainingConditions(const Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    add("requires_grad of " + parameter.key(), /*is_switch=*/true,
        [tensor = parameter.value()] { return tensor.requires_grad() ? 1.0 : 0.0; });
  }
  add_modules("", module);
}

void TrainingConditions::add(std::string name, bool is_switch, std::function<double()> read) {
  conditions_.push_back({.name = std::move(name), .is_switch = is_switch, .read = std::move(read)});
}

void TrainingConditions::add_modules(const std::string& path, const Module& module) {
  const std::string name = path.empty() ? "the module" : path;
  add("training mode of " + name, /*is_switch=*/true, [&module] { return module.is_training() ? 1.0 : 0.0; });
  if (auto rate = dropout_rate_of(module)) add("dropout rate of " + name, /*is_switch=*/false, std::move(rate));
  for (const auto& child : module.named_children()) {
    kept_.push_back(child.value());
    add_modules(path.empty() ? child.key() : path + "." + child.key(), *child.value());
  }
}

void TrainingConditions::add_scheduler(const std::string& name, const torch::optim::LRScheduler& scheduler) {
  const auto* steps = dynamic_cast<const torch::optim::StepLR*>(&scheduler);
  if (steps == nullptr) return;
  add("step_size of " + name, /*is_switch=*/false, [steps] { return steps->*member_of(StepSizeMember()); });
  add("gamma of " + name, /*is_switch=*/false, [steps] { return steps->*member_of(GammaMember()); });
}

void TrainingConditions::add_settings(const std::string& name, const std::vector<SchedulerSetting>& settings) {
  for (const SchedulerSetting& setting : settings) add(setting.name + " of " + name, /*is_switch=*/false, setting.read);
}

// LBFGS has one group of parameters.
void TrainingConditions::add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) == nullptr) return;
  add("strong_wolfe as line_search_fn of " + name, /*is_switch=*/true, [&optimizer] {
    const auto& options = static_cast<const torch::optim::LBFGSOptions&>(optimizer.param_groups()[0].options());
    return options.line_search_fn().value_or("") == "strong_wolfe" ? 1.0 : 0.0;
  });
}

void TrainingConditions::end_step() {
  std::vector<std::string> changes;
  for (Condition& condition : conditions_) {
    const double now = condition.read();
    if (is_restored_ && has_jumped(condition, now)) {
      changes.push_back(fmt::format("{}: was {}, is {}", condition.name, text_of(*condition.last, condition.is_switch),
                                    text_of(now, condition.is_switch)));
    }
    condition.before = std::exchange(condition.last, now);
  }
  is_restored_ = false;
  changes_ = list_of(std::move(changes));
}

bool TrainingConditions::has_jumped(const Condition& condition, double now) {
  if (!condition.last) return false;
  const double pace = condition.before ? std::abs(*condition.last - *condition.before) : 0;
  return !(now == *condition.last || std::abs(now - *condition.last) <= 2 * pace);
}

std::string TrainingConditions::text(bool of_now) const {
  std::string text;
  for (const Condition& condition : conditions_) {
    const std::optional<double> last = of_now ? condition.read() : condition.last;
    if (last) text += fmt::format("{} {} {}\n", *last, condition.before.value_or(*last), condition.name);
  }
  return text;
}

at::Tensor TrainingConditions::record() const {
  const std::string text = this->text(/*of_now=*/false);
  const at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

int64_t TrainingConditions::record_size() const {
  return static_cast<int64_t>(text(/*of_now=*/true).size());
}

void TrainingConditions::restore(const at::Tensor& record) {
  std::map<std::string, std::pair<double, double>> stored;
  std::istringstream lines(std::string(static_cast<const char*>(record.data_ptr()), record.nbytes()));
  lines.imbue(std::locale::classic());
  double last = 0, before = 0;
  for (std::string name; lines >> last >> before && lines.ignore() && std::getline(lines, name);)
    stored[name] = {last, before};
  for (Condition& condition : conditions_) {
    condition.last.reset();
    condition.before.reset();
    const auto found = stored.find(condition.name);
    if (found != stored.end()) std::tie(condition.last, condition.before) = found->second;
  }
  is_restored_ = true;
}

}  // namespace longhaul
