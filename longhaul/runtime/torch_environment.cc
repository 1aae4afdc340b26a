#include "longhaul/runtime/torch_environment.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <fstream>
#include <regex>

#include "longhaul/base/above_stdio.h"

extern "C" int openblas_get_num_threads() __attribute__((weak));
extern "C" char* openblas_get_config() __attribute__((weak));
extern "C" char* openblas_get_corename() __attribute__((weak));

namespace longhaul {
namespace {

// The processor's name as /proc/cpuinfo has it; empty: it has none.
std::string processor() {
  const AboveStdio above;
  std::ifstream file("/proc/cpuinfo");
  static constexpr std::string_view kKey = "model name";
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(kKey) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

// Which vector instructions libtorch's own loops use: "AVX2".
std::string instructions() {
  std::smatch match;
  const std::string config = at::show_config();
  return std::regex_search(config, match, std::regex("CPU capability usage: (\\S+)")) ? match[1].str() : "";
}

// "OpenBLAS 0.3.21 Haswell": its version and which of its kernels it has chosen. Empty: it is not known.
std::string blas() {
  if (const std::string within = blas_within(at::show_config()); !within.empty()) return within;
  if (openblas_get_config == nullptr) return "";
  std::smatch match;
  const std::string config = openblas_get_config();
  const bool found = std::regex_search(config, match, std::regex("^\\S+ \\S+"));
  const std::string core = openblas_get_corename != nullptr ? openblas_get_corename() : "";
  return (found ? match[0].str() : config) + " " + core;
}

// Of our own loops.
std::string compiler() {
#ifdef __clang__
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

// What does not change while the process runs; regular expressions over a long text are not for every save.
const Environment& constant_facts() {
  static const auto* facts = [] {
    auto* known = new Environment{{"libtorch", TORCH_VERSION},
                                  {"compiler", compiler()},
                                  {"processor", processor()},
                                  {"vector instructions", instructions()}};
    if (const std::string name = blas(); !name.empty()) known->emplace("BLAS", name);
    return known;
  }();
  return *facts;
}

}  // namespace

std::string blas_within(const std::string& torch_config) {
  std::smatch match;
  const std::regex mkl("Math Kernel Library Version (\\d[\\d.]*)");
  return std::regex_search(torch_config, match, mkl) ? "MKL " + match[1].str() : "";
}

Environment torch_environment() {
  Environment facts = constant_facts();
  facts["threads"] = std::to_string(at::get_num_threads());
  const bool is_called = openblas_get_num_threads != nullptr && !at::hasMKL();
  if (is_called) facts["BLAS threads"] = std::to_string(openblas_get_num_threads());
  return facts;
}

}  // namespace longhaul
