#!/usr/bin/env bash
# descriptor_lint.sh SOURCE_DIR: what makes a descriptor in longhaul/ stands behind an AboveStdio (base/above_stdio.h), which
# is on one of the three lines before it, so that none is ever below 3. Tests and fixtures may open what they like.
set -euo pipefail
cd "$1"

find longhaul \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.cc' ! -name '*_fixture.h' ! -path longhaul/base/above_stdio.cc \
  -print | LC_ALL=C sort |
  xargs awk '
    BEGIN {
      calls = "creat|pipe2?|eventfd|socket|socketpair|accept4?|dup|dup2|dup3|mkostemps?|mkstemps?|memfd_create|shm_open"
      calls = calls "|io_uring_queue_init(_params)?|io_uring_setup|epoll_create1?|inotify_init1?|fanotify_init|signalfd"
      calls = calls "|timerfd_create|userfaultfd|pidfd_open|perf_event_open|fopen|freopen|fdopen|popen|tmpfile|opendir"
      calls = calls "|fdopendir|openat2?|open_by_handle_at|posix_openpt"
      # A word before a bracket; open() only as the system has it: files and queues have an open() of their own.
      made = "(^|[^A-Za-z0-9_.>])(" calls ") *\\(|(^|[^A-Za-z0-9_])::open(64)? *\\(|F_DUPFD|SYS_(open|pipe|socket|eventfd|memfd)"
      made = made "|[io]?fstream +[a-z_]+[({]|directory_iterator( +[a-z_]+)?[({]"
    }
    FNR == 1 { guarded = -9 }
    {
      line = $0
      sub(/\/\/.*/, "", line)
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      if (line ~ /(const )?AboveStdio [a-z_]+;/) guarded = FNR
      if (line !~ made || FNR - guarded <= 3) next
      printf "%s:%d: a descriptor is made without an AboveStdio before it: %s\n", FILENAME, FNR, $0
      failed = 1
    }
    END { exit failed }'
