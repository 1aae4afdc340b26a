#pragma once

namespace longhaul {

// While one lives, a write to a pipe that nobody reads any more (SIGPIPE: `| head -1`) and one beyond the limit of file
// sizes (SIGXFSZ: `ulimit -f`) fail, with EPIPE and EFBIG, instead of ending the process without a checkpoint: a save
// that fails is tried again, what the program prints is lost. Only where the signal had its default action; with the
// last one of a process that comes back, but for SIGPIPE where nobody reads standard output or error any more: what is
// printed at the exit is not to make a death of a good end. Programs that this one starts have the default action.
// StopSignals, Preemption, Supervisor and MonitoredSession have one. Any thread.
class WriteSignals {
 public:
  WriteSignals();
  ~WriteSignals();
  WriteSignals(const WriteSignals&) = delete;
  WriteSignals& operator=(const WriteSignals&) = delete;
};

}  // namespace longhaul
