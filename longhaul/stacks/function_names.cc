#include "longhaul/stacks/function_names.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "longhaul/base/above_stdio.h"

namespace longhaul {
namespace {

constexpr size_t kMostName = 160;  // bytes

// What is not in the file itself might be far away (debuginfod).
int find_no_other_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

std::string_view file_name(const char* path) {
  const std::string_view whole(path);
  return whole.substr(whole.rfind('/') + 1);
}

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  std::string text = name != nullptr ? name.get() : symbol;
  if (text.size() > kMostName) text = text.substr(0, kMostName) + "...";
  return text;
}

std::string line_of(Dwfl_Module* module, uintptr_t address) {
  Dwfl_Line* const line = dwfl_module_getsrc(module, address);
  int number = 0;
  const char* const file = line != nullptr ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  return file != nullptr ? fmt::format("{}:{}", file_name(file), number) : "";
}

}  // namespace

struct FunctionNames::Modules {
  Dwfl* dwfl = nullptr;  // null: it cannot be read
  std::unordered_map<uintptr_t, std::string> known;
};

FunctionNames::FunctionNames() : modules_(std::make_unique<Modules>()) {
  static char* no_path = nullptr;
  static const Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                                        .find_debuginfo = find_no_other_file,
                                        .section_address = nullptr,
                                        .debuginfo_path = &no_path};
  const AboveStdio above;
  Dwfl* const dwfl = dwfl_begin(&callbacks);
  if (dwfl == nullptr) return;
  const bool is_read = dwfl_linux_proc_report(dwfl, getpid()) == 0;
  if (dwfl_report_end(dwfl, nullptr, nullptr) == 0 && is_read) {
    modules_->dwfl = dwfl;
  } else {
    dwfl_end(dwfl);
  }
}

FunctionNames::~FunctionNames() {
  if (modules_->dwfl != nullptr) dwfl_end(modules_->dwfl);
}

std::string FunctionNames::name_of(uintptr_t address) {
  std::string& name = modules_->known[address];
  if (!name.empty()) return name;
  const AboveStdio above;
  Dwfl_Module* const module = modules_->dwfl != nullptr ? dwfl_addrmodule(modules_->dwfl, address) : nullptr;
  if (module == nullptr) return name = fmt::format("{:#x}", address);
  Dwarf_Addr start = 0;
  const char* const path = dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr);
  GElf_Off offset = 0;
  GElf_Sym symbol{};
  const char* const function = dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  const std::string line = function != nullptr ? line_of(module, address) : "";
  const std::string place = !line.empty() ? line : path != nullptr ? std::string(file_name(path)) : "?";
  if (function == nullptr) return name = fmt::format("{}+{:#x}", place, address - start);  // for addr2line
  return name = fmt::format("{} ({})", demangled(function), place);
}

}  // namespace longhaul
