#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

namespace longhaul {

// What the library does with a signal, and who does it.
enum class SignalUse {
  kInterrupt,    // StopSignals, Preemption: somebody at the terminal ends the training; a second one ends the process
  kTerminate,    // StopSignals, Preemption: a scheduler ends it
  kHangUp,       // StopSignals, Preemption: the terminal is closed; left alone where it was ignored (nohup)
  kWarn,         // Preemption: a scheduler tells that it will end it
  kSave,         // Preemption: a checkpoint is to be taken
  kFailedWrite,  // WriteSignals: a write fails with an error instead of ending the process
  kCrash         // CrashRecord: that the process dies of it is written down; then it goes where it went before
};

struct UsedSignal {
  int number;
  SignalUse use;
};

// All signals that the library uses; no other is touched.
inline constexpr UsedSignal kUsedSignals[] = {
    {SIGINT, SignalUse::kInterrupt},    {SIGTERM, SignalUse::kTerminate}, {SIGHUP, SignalUse::kHangUp},
    {SIGUSR1, SignalUse::kWarn},        {SIGUSR2, SignalUse::kSave},      {SIGPIPE, SignalUse::kFailedWrite},
    {SIGXFSZ, SignalUse::kFailedWrite}, {SIGSEGV, SignalUse::kCrash},     {SIGBUS, SignalUse::kCrash},
    {SIGFPE, SignalUse::kCrash},        {SIGILL, SignalUse::kCrash},      {SIGABRT, SignalUse::kCrash}};

// In the order of the uses.
inline std::vector<int> signals_for(std::initializer_list<SignalUse> uses) {
  std::vector<int> numbers;
  for (const SignalUse use : uses) {
    for (const UsedSignal& signal : kUsedSignals) {
      if (signal.use == use) numbers.push_back(signal.number);
    }
  }
  return numbers;
}

// Those that StopSignals takes, unless it is told others.
inline std::vector<int> stopping_signals() {
  return signals_for({SignalUse::kInterrupt, SignalUse::kTerminate, SignalUse::kHangUp});
}

}  // namespace longhaul
