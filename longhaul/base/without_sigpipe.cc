#include "longhaul/base/without_sigpipe.h"

#include <pthread.h>

namespace longhaul {

WithoutSigpipe::WithoutSigpipe() {
  sigemptyset(&pipe_);
  sigaddset(&pipe_, SIGPIPE);
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
}

WithoutSigpipe::~WithoutSigpipe() {
  const timespec none{0, 0};
  if (!was_pending_) sigtimedwait(&pipe_, nullptr, &none);  // wait: none
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace longhaul
