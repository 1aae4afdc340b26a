#include "longhaul/stacks/thread_stacks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/waiting.h"
#include "longhaul/stacks/function_names.h"

namespace longhaul {
namespace {

using Answer = RawStack::Answer;

std::vector<int64_t> threads_of_process() {
  std::vector<int64_t> threads;
  std::error_code error;
  const AboveStdio above;
  std::filesystem::directory_iterator entry("/proc/self/task", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    int64_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0 && thread != syscall(SYS_gettid)) threads.push_back(thread);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

// The first line of a file of the thread; empty: it has ended, or the kernel does not tell.
std::string line_of_thread(int64_t thread, const char* file) {
  const AboveStdio above;
  std::ifstream opened(fmt::format("/proc/self/task/{}/{}", thread, file));
  std::string line;
  std::getline(opened, line);
  return line;
}

// Of "4711 (train) S 1 ...", where the name may have brackets and spaces.
char state_of(const std::string& stat) {
  const size_t end = stat.rfind(')');
  return end != stat.npos && end + 2 < stat.size() ? stat[end + 2] : '?';
}

ThreadStack look_at(int64_t thread, Seconds limit) {
  ThreadStack found{.thread = thread, .name = line_of_thread(thread, "comm")};
  found.state = state_of(line_of_thread(thread, "stat"));
  found.in_kernel = line_of_thread(thread, "wchan");
  if (found.in_kernel == "0") found.in_kernel.clear();
  found.stack = stack_of_thread(thread, limit);
  return found;
}

const char* state_text(char state) {
  switch (state) {
    case 'R': return "runs";
    case 'S': return "sleeps";
    case 'D': return "is in the kernel, uninterruptibly";
    case 'T':
    case 't': return "is stopped";
    case 'Z':
    case 'X': return "has ended";
    default: return "is in an unknown state";
  }
}

const char* text_of(Answer answer) {
  switch (answer) {
    case Answer::kHere: return "";
    case Answer::kNoAnswer: return "no stack: it does not answer";
    case Answer::kBlocked: return "no stack: it blocks signals";
    case Answer::kGone: return "no stack: it has ended";
    case Answer::kNoSignal: return "no stack: the program has handlers for all real-time signals";
  }
  return "";
}

// Threads that are in the same place.
struct Group {
  const ThreadStack* first = nullptr;
  std::vector<std::string> names;
};

std::string names_of(const Group& group) {
  constexpr size_t kMostNames = 8;
  const size_t shown = std::min(group.names.size(), kMostNames);
  std::string text =
      fmt::format("{}", fmt::join(group.names.begin(), group.names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (shown < group.names.size()) text += fmt::format(" and {} more", group.names.size() - shown);
  return text;
}

std::string heading_of(const Group& group) {
  const ThreadStack& thread = *group.first;
  const bool is_one = group.names.size() == 1;
  std::string text = is_one ? fmt::format("thread {}, {}", names_of(group), state_text(thread.state))
                            : fmt::format("{} threads in the same place, {}: {}", group.names.size(),
                                          state_text(thread.state), names_of(group));
  if (!thread.waits_for.empty()) {
    text += fmt::format(", wait{} for {} since {:.3g} s", is_one ? "s" : "", thread.waits_for, thread.waiting.count());
  }
  if (!thread.in_kernel.empty()) text += fmt::format(" (in {})", thread.in_kernel);
  return text + ":\n";
}

// By their first thread.
std::vector<Group> groups_of(const std::vector<ThreadStack>& threads) {
  std::vector<Group> groups;
  std::map<std::pair<std::vector<uintptr_t>, std::string>, size_t> known;
  for (const ThreadStack& thread : threads) {
    const std::string kind = fmt::format("{} {} {} {}", thread.state, static_cast<int>(thread.stack.answer),
                                         thread.waits_for, thread.stack.answer == Answer::kHere ? 0 : thread.thread);
    const auto [at, is_new] = known.emplace(std::pair(thread.stack.addresses, kind), groups.size());
    if (is_new) groups.push_back({.first = &thread, .names = {}});
    groups[at->second].names.push_back(fmt::format("{} {}", thread.thread, thread.name));
  }
  return groups;
}

}  // namespace

ThreadStacks stacks_of_threads(const StackLimits& limits) {
  const Clock& clock = Clock::real();
  const Seconds end = clock.now() + limits.all;
  ThreadStacks stacks;
  std::map<int64_t, WaitOfThread> waits;
  for (WaitOfThread& wait : waits_of_threads()) waits[wait.thread] = std::move(wait);
  for (const int64_t thread : threads_of_process()) {
    const Seconds left = end - clock.now();
    if (stacks.threads.size() == limits.threads || left <= Seconds{0}) {
      ++stacks.others;
      continue;
    }
    ThreadStack found = look_at(thread, std::min(left, limits.each));
    if (found.stack.answer == Answer::kGone) continue;
    if (const auto wait = waits.find(thread); wait != waits.end()) {
      found.waits_for = wait->second.what;
      found.waiting = wait->second.lasting;
    }
    stacks.threads.push_back(std::move(found));
  }
  return stacks;
}

std::string describe(const ThreadStacks& stacks, const StackLimits& limits) {
  FunctionNames names;
  std::string text;
  size_t told = 0;
  for (const Group& group : groups_of(stacks.threads)) {
    if (text.size() > limits.bytes) break;
    text += heading_of(group);
    const RawStack& stack = group.first->stack;
    if (stack.answer != Answer::kHere) text += fmt::format("  {}\n", text_of(stack.answer));
    for (const uintptr_t address : stack.addresses) text += fmt::format("  {}\n", names.name_of(address));
    told += group.names.size();
  }
  if (const size_t more = stacks.threads.size() - told + stacks.others; more > 0) {
    text += fmt::format("and {} more threads\n", more);
  }
  return text;
}

}  // namespace longhaul
