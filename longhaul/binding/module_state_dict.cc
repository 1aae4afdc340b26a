#include "longhaul/binding/module_state_dict.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <set>

#include "longhaul/base/error.h"
#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/binding/values/bound_tensors.h"
#include "longhaul/binding/values/torch_values.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

using ModuleTensors = std::map<std::string, at::Tensor>;

ModuleTensors own_tensors(const torch::nn::Module& module) {
  ModuleTensors tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) tensors.emplace(buffer.key(), buffer.value());
  return tensors;
}

// "float[3,2]"
std::string form_of(DType dtype, const Shape& shape) {
  return dtype_name(dtype) + shape.to_string();
}

// How a file and a module fit together.
class Comparison {
 public:
  Comparison(const ModuleTensors& module, const StateDict& file, std::string place = "the file")
      : place_(std::move(place)) {
    std::set<std::string> missing;
    for (const auto& [name, tensor] : module) missing.insert(name);
    for (const auto& [name, tensor] : file) {
      const auto own = module.find(name);
      if (own == module.end()) {
        unexpected_.push_back(name);
      } else {
        missing.erase(name);
        compare(name, tensor, own->second);
      }
    }
    missing_.assign(missing.begin(), missing.end());
    has_common_ = missing_.size() < module.size() || module.empty();
  }

  void check(const std::string& path, StateDictMatch match) const {
    const bool is_strict = match == StateDictMatch::kStrict;
    const bool fits = different_.empty() && has_common_ && (!is_strict || (missing_.empty() && unexpected_.empty()));
    if (!fits) throw InvalidArgumentError(fmt::format("{} does not fit the module: {}{}", path, all(), remedy()));
    if (const std::string left_out = all(); !left_out.empty()) {
      log_warning("{} was loaded but for what only one side has: {}", path, left_out);
    }
    if (!converted_.empty()) {
      log_info("{}: tensors were converted to the module's dtypes: {}", path, first_names(converted_));
    }
  }

 private:
  void compare(const std::string& name, const Tensor& tensor, const at::Tensor& own) {
    const DType dtype = dtype_of(own.scalar_type());
    const bool converts = is_floating(dtype) && is_floating(tensor.dtype());
    if (tensor.shape() != shape_of(own) || (tensor.dtype() != dtype && !converts)) {
      different_.push_back(fmt::format("{} is {} in {}, {} in the module", name,
                                       form_of(tensor.dtype(), tensor.shape()), place_, form_of(dtype, shape_of(own))));
    } else if (tensor.dtype() != dtype) {
      converted_.push_back(name);
    }
  }

  std::string all() const {
    std::vector<std::string> parts;
    if (!missing_.empty()) parts.push_back(fmt::format("missing in {}: {}", place_, first_names(missing_)));
    if (!unexpected_.empty()) parts.push_back(fmt::format("unexpected in {}: {}", place_, first_names(unexpected_)));
    if (!different_.empty()) parts.push_back(first_names(different_));
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  std::string remedy() const {
    std::set<std::string> dicts;
    for (const std::string& name : unexpected_) {
      if (const size_t slash = name.find('/'); slash != name.npos) dicts.insert(name.substr(0, slash));
    }
    if (!dicts.empty()) {
      return fmt::format(". The file has dicts in its dict ({}): the option `dict` chooses one",
                         first_names({dicts.begin(), dicts.end()}));
    }
    if (!has_common_ || (!missing_.empty() && !unexpected_.empty())) {
      return ". The option `rename` maps the file's names to the module's";
    }
    return missing_.empty() && unexpected_.empty() ? "" : ". StateDictMatch::kCommon loads what both have";
  }

  const std::string place_;
  std::vector<std::string> missing_, unexpected_, different_, converted_;
  bool has_common_ = false;
};

void warn_if_bound(const ModuleTensors& tensors, const std::string& path) {
  if (std::none_of(tensors.begin(), tensors.end(), [](const auto& one) { return BoundTensors::any_has(one.second); })) {
    return;
  }
  log_warning(
      "{} was loaded into a module that is bound to a graph. Weights that were restored or trained before are gone, "
      "and a restart would replace them again: call load_state_dict before torch_training() or the Trainer, so that a "
      "run's own checkpoint takes precedence",
      path);
}

// Returns those that the module has.
StateDict copy_into(const ModuleTensors& own, const StateDict& tensors) {
  const at::NoGradGuard no_grad;
  StateDict copied;
  for (const auto& [name, tensor] : tensors) {
    const auto found = own.find(name);
    if (found == own.end()) continue;
    found->second.copy_(to_aten(tensor));
    copied.emplace_back(name, tensor);
  }
  return copied;
}

}  // namespace

StateDictReport save_state_dict(const torch::nn::Module& module, const std::string& path,
                                const StateDictOptions& options, FileSystem& files) {
  StateDict tensors;
  for (const auto& [name, tensor] : own_tensors(module)) {
    check_can_be_kept(name, tensor);
    tensors.emplace_back(name, to_tensor(tensor.detach()));
  }
  return save_state_dict(tensors, path, options, files);
}

StateDictReport load_state_dict(torch::nn::Module& module, const std::string& path, const StateDictOptions& options,
                                StateDictMatch match, FileSystem& files) {
  const StateDict file = load_state_dict(path, options, files);
  const ModuleTensors own = own_tensors(module);
  Comparison(own, file).check(path, match);
  StateDictReport report;
  for (const auto& [name, tensor] : copy_into(own, file)) {
    report.names.push_back(name);
    report.bytes += tensor.size_bytes();
  }
  std::sort(report.names.begin(), report.names.end());
  warn_if_bound(own, path);
  return report;
}

void load_state_dict(torch::nn::Module& module, const StateDict& tensors, StateDictMatch match) {
  const ModuleTensors own = own_tensors(module);
  Comparison(own, tensors, "the state dict").check("the state dict", match);
  copy_into(own, tensors);
  warn_if_bound(own, "a state dict");
}

StateDict state_dict(const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  StateDict tensors;
  for (const auto& [name, tensor] : own_tensors(module)) {
    check_can_be_kept(name, tensor);
    tensors.emplace_back(name, to_tensor(tensor.detach().cpu().clone(at::MemoryFormat::Contiguous)));
  }
  return tensors;
}

}  // namespace longhaul
