#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace longhaul::testing {

// How many bytes of memory a child process has taken at its peak while it ran `work`, beside what it began with.
// Nothing under a sanitizer, whose own memory is far larger: the test is skipped then, and needs plain_memory
// (cmake/LonghaulTest.cmake). An exception of `work` counts as its end. The calling process should have no other
// threads.
std::optional<uint64_t> memory_growth(const std::function<void()>& work);

}  // namespace longhaul::testing
