#include "longhaul/checkpoint/torch_archive/script_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

constexpr std::ptrdiff_t kDeepestModule = 64;  // modules in modules

bool can_be_quoted(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

[[noreturn]] void refuse(const std::string& name, const char* why) {
  throw InvalidArgumentError(
      fmt::format("an archive for C++ cannot have the tensor {}: {}; `rename` can give it another name or leave it out",
                  excerpt(name), why));
}

}  // namespace

ScriptModules::ScriptModules(std::span<const TorchTensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) add(i, tensors[i].name);
}

void ScriptModules::add(size_t tensor, const std::string& name) {
  if (!can_be_quoted(name)) refuse(name, "its name has other characters than those of ASCII, or a quotation mark");
  if (std::count(name.begin(), name.end(), '.') > kDeepestModule) refuse(name, "its name has more than 65 parts");
  size_t module = 0;
  std::string_view rest = name;
  for (size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    const std::string part(rest.substr(0, dot));
    if (part.empty()) refuse(name, "a part of its name is empty");
    if (modules_[module].tensors.contains(part)) refuse(name, "another tensor has the name of its module");
    const auto [found, is_new] = modules_[module].modules.try_emplace(part, modules_.size());
    module = found->second;
    if (is_new) modules_.emplace_back();
    rest.remove_prefix(dot + 1);
  }
  if (rest.empty()) refuse(name, "a part of its name is empty");
  if (modules_[module].modules.contains(std::string(rest))) refuse(name, "a module has its name");
  modules_[module].tensors.emplace(rest, tensor);
}

std::string ScriptModules::class_name(size_t module) {
  return module == 0 ? "Module" : fmt::format("Module{}", module);
}

// All tensors are called buffers: whether one is a parameter is up to the program that loads it.
std::string ScriptModules::source() const {
  std::string source;
  for (size_t i = 0; i < modules_.size(); ++i) {
    std::string buffers, attributes;
    for (const auto& [name, tensor] : modules_[i].tensors) {
      buffers += fmt::format("\"{}\", ", name);
      attributes += fmt::format("  __annotations__[\"{}\"] = Tensor\n", name);
    }
    for (const auto& [name, module] : modules_[i].modules) {
      attributes += fmt::format("  __annotations__[\"{}\"] = __torch__.{}\n", name, class_name(module));
    }
    source += fmt::format("class {}(Module):\n  __parameters__ = []\n  __buffers__ = [{}]\n  __annotations__ = []\n{}",
                          class_name(i), buffers, attributes);
  }
  return source;
}

}  // namespace longhaul
