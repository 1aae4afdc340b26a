#pragma once

namespace longhaul {

// While an instance exists, writes to a pipe without a reader (SIGPIPE: `| head -1`) and beyond the file size limit
// (SIGXFSZ: `ulimit -f`) fail with EPIPE and EFBIG, instead of ending the process without a checkpoint: a failed save
// is retried, and the program's output is lost. This applies only to signals that had their default action. The last
// instance in a process restores that, except for SIGPIPE if standard output or error has no reader any more: a message
// at exit must not turn a clean end into a death by signal. Child processes have the default action. StopSignals,
// Preemption, Supervisor and MonitoredSession each hold one. Any thread.
class WriteSignals {
 public:
  WriteSignals();
  ~WriteSignals();
  WriteSignals(const WriteSignals&) = delete;
  WriteSignals& operator=(const WriteSignals&) = delete;
};

}  // namespace longhaul
