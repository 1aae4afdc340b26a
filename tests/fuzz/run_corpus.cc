// run_corpus DIRECTORY: calls a fuzz target's function, where no fuzzer calls it, with each file of its corpus, with
// each of their prefixes, and with each of their bytes changed. An input fails by an exception that is no
// longhaul::Error, by a crash, or by asking for more memory than it can deserve.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "longhaul/io/files/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr rlim_t kMostMemory = rlim_t{1} << 30;

// A sanitizer's own memory is far larger.
void limit_memory() {
#ifndef LONGHAUL_SANITIZED
  const rlimit limit{kMostMemory, kMostMemory};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

void run_with_damages(std::string input) {
  run(input);
  for (size_t size = 0; size < input.size(); ++size) run(input.substr(0, size));
  for (char& byte : input) {
    for (const char other : {static_cast<char>(byte ^ 1), static_cast<char>(byte ^ 0x80), '\0', '\x7f', '\xff'}) {
      const char kept = byte;
      byte = other;
      run(input);
      byte = kept;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  limit_memory();
  longhaul::FileSystem& files = longhaul::FileSystem::real();
  const auto names = files.list(argv[1]);
  for (const std::string& name : names) {
    std::printf("%s\n", name.c_str());
    run_with_damages(longhaul::read_file(files, longhaul::join_path(argv[1], name)));
  }
  return names.empty() ? 1 : 0;
}
