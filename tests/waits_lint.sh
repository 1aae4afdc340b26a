#!/usr/bin/env bash
# waits_lint.sh SOURCE_DIR: every wait in longhaul/ that has a time, or that only its owner ends, says why in a comment
# `// wait: REASON` on its line or in the comment right above. A thread that looks again after a while, at something that
# could notify it, has no such reason: it waits for the notification (base/mutex.h, Coordinator::notify()). All reasons:
# grep -rn '// wait:' longhaul. Tests and fixtures may wait as they like.
#
# Not found, since they have no time of their own: Coordinator::wait_for_stop() without an argument, std::future and joins.
set -euo pipefail
cd "$1"

find longhaul \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.cc' ! -name '*_fixture.h' ! -path 'longhaul/testing/*' \
  -print | LC_ALL=C sort |
  xargs awk '
    BEGIN {
      # By name, wherever it is called.
      calls = "sleep|usleep|nanosleep|clock_nanosleep|sleep_for|sleep_until|wait_for|wait_until|wait_for_stop|wait_for_stop_or"
      calls = calls "|yield|sched_yield|thrd_sleep|thrd_yield|timedwait|ppoll|pselect|epoll_p?wait2?|sigtimedwait|sigwait(info)?"
      calls = calls "|sem_(timed|clock)?wait|mq_timed(send|receive)|pthread_cond_(timed|clock)?wait|pthread_(timed|clock)join_np"
      calls = calls "|try_(lock|acquire)_(for|until)|u?alarm|setitimer|timerfd_settime|timer_settime"
      calls = calls "|io_uring_wait_cqes?(_timeout)?|io_uring_(submit_and_wait|enter)(_timeout)?"
      waits = "(^|[^A-Za-z0-9_])(" calls ")\\(([^)]|$)|(^|[^A-Za-z0-9_])(yield|sched_yield)\\("
      # Those whose names mean something else, too: poll() of a queue and select() of a graph.
      waits = waits "|(^|[^A-Za-z0-9_.>])poll\\(([^)]|$)|(^|[^A-Za-z0-9_])::select\\(([^)]|$)"
      # Of a condition variable.
      waits = waits "|(\\.|->)wait\\((lock|.*mutex_?)\\)"
      # A service: what it does each time, it does whether or not there is something to do.
      waits = waits "|: LooperThread\\(|return LooperThread::loop\\("
      declaration = "(" calls ")\\((const |[A-Z][A-Za-z]*&? [a-z_]+[,)])"
    }
    function complain(line, what, text) {
      printf "%s:%d: %s: %s\n", FILENAME, line, what, text
      failed = 1
    }
    FNR == 1 { reason = 0 }
    /^ *\/\// {
      if ($0 ~ /\/\/ wait: ./) reason = FNR
      next
    }
    {
      line = $0
      sub(/\/\/.*/, "", line)
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      is_wait = line ~ waits && line !~ declaration
      has_reason = $0 ~ /\/\/ wait: ./
      if (is_wait && !has_reason && !reason) complain(FNR, "a wait without a reason (// wait: ...)", $0)
      if (!is_wait && has_reason) complain(FNR, "a reason without a wait", $0)
      if (!is_wait && reason) complain(reason, "a reason without a wait below it", $0)
      reason = 0
    }
    END { exit failed }'
