#pragma once

namespace longhaul {

// While an instance exists, a write to a pipe without a reader (SIGPIPE: `| head -1`) fails with EPIPE, and a write
// beyond the file size limit (SIGXFSZ: `ulimit -f`) with EFBIG. Neither ends the process without a checkpoint: a failed
// save is retried, and the program's output is lost. This applies only to signals that had their default action. The
// last instance in a process restores that action. It does not restore SIGPIPE's if standard output or error has no
// reader any more, because a message at exit must not turn a clean end into a death by signal. Child processes have the
// default action. StopSignals, Preemption, Supervisor and MonitoredSession each hold an instance. Any thread may create
// and destroy them.
class WriteSignals {
 public:
  WriteSignals();
  ~WriteSignals();
  WriteSignals(const WriteSignals&) = delete;
  WriteSignals& operator=(const WriteSignals&) = delete;
};

}  // namespace longhaul
