#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace longhaul::testing {

// By how many bytes the memory of a child process grew at its peak while it ran `work`. nullopt under a sanitizer,
// whose own memory use is far larger: the test is skipped then, and needs plain_memory (cmake/LonghaulTest.cmake). An
// exception just ends `work`. The calling process should have no other threads.
std::optional<uint64_t> memory_growth(const std::function<void()>& work);

}  // namespace longhaul::testing
