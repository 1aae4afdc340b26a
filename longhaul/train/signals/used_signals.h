#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

namespace longhaul {

// The library's use of a signal, and the classes that handle it.
enum class SignalUse {
  kInterrupt,    // StopSignals, Preemption: the user ends training at the terminal; a second one ends the process
  kTerminate,    // StopSignals, Preemption: a scheduler ends it
  kHangUp,       // StopSignals, Preemption: the terminal is closed; left alone where it was ignored (nohup)
  kWarn,         // Preemption: a scheduler announces the end
  kSave,         // Preemption: a checkpoint is requested
  kFailedWrite,  // WriteSignals: a write fails with an error instead of ending the process
  kCrash         // CrashRecord: the death of the process is recorded; then the previous action applies
};

struct UsedSignal {
  int number;
  SignalUse use;
};

// All signals that the library uses; it touches no others.
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

// The default signals of StopSignals.
inline std::vector<int> stopping_signals() {
  return signals_for({SignalUse::kInterrupt, SignalUse::kTerminate, SignalUse::kHangUp});
}

}  // namespace longhaul
