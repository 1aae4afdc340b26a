#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "longhaul/checkpoint/torch_archive/torch_archive_writer.h"

namespace longhaul {

// The modules that the dotted names of tensors make: "0.weight" is the attribute `weight` of the module `0` of the
// root. In an archive each is an object of a class of its own, whose source lists the attributes.
class ScriptModules {
 public:
  // InvalidArgumentError: a name has an empty part or a character that the source of a class cannot have, or one tensor
  // has the name of a module.
  explicit ScriptModules(std::span<const TorchTensor> tensors);

  struct Module {
    std::map<std::string, size_t> tensors;  // by their attributes, with their indices
    std::map<std::string, size_t> modules;
  };
  const std::vector<Module>& modules() const { return modules_; }  // the root is the first

  static std::string class_name(size_t module);  // "Module", "Module1", ...
  std::string source() const;                    // of all classes: code/__torch__.py

 private:
  void add(size_t tensor, const std::string& name);

  std::vector<Module> modules_{1};
};

}  // namespace longhaul
