#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

namespace longhaul {

// The library's use of a signal, and the classes that handle it.
enum class SignalUse {
  kInterrupt,    // StopSignals, Preemption: the user ends training at the terminal; a second one ends the process
  kTerminate,    // StopSignals, Preemption: a scheduler ends training
  kHangUp,       // StopSignals, Preemption: the terminal was closed; left alone if it was ignored before (nohup)
  kWarn,         // Preemption: a scheduler announces that it will end the process
  kSave,         // Preemption: requests a checkpoint
  kFailedWrite,  // WriteSignals: ignored, so that a failed write is an error and does not end the process
  kCrash         // CrashRecord: records the death of the process, then takes the previous action
};

struct UsedSignal {
  int number;
  SignalUse use;
};

// All signals that the library uses; it touches no others but a real-time one that nobody handles, to ask threads where
// they are (stacks/stack_signal.h).
inline constexpr UsedSignal kUsedSignals[] = {
    {SIGINT, SignalUse::kInterrupt},    {SIGTERM, SignalUse::kTerminate}, {SIGHUP, SignalUse::kHangUp},
    {SIGUSR1, SignalUse::kWarn},        {SIGUSR2, SignalUse::kSave},      {SIGPIPE, SignalUse::kFailedWrite},
    {SIGXFSZ, SignalUse::kFailedWrite}, {SIGSEGV, SignalUse::kCrash},     {SIGBUS, SignalUse::kCrash},
    {SIGFPE, SignalUse::kCrash},        {SIGILL, SignalUse::kCrash},      {SIGABRT, SignalUse::kCrash}};

// The signals for these uses, in the same order.
inline std::vector<int> signals_for(std::initializer_list<SignalUse> uses) {
  std::vector<int> numbers;
  for (const SignalUse use : uses) {
    for (const UsedSignal& signal : kUsedSignals) {
      if (signal.use == use) numbers.push_back(signal.number);
    }
  }
  return numbers;
}

// The default signals of StopSignals.
inline std::vector<int> stopping_signals() {
  return signals_for({SignalUse::kInterrupt, SignalUse::kTerminate, SignalUse::kHangUp});
}

}  // namespace longhaul
