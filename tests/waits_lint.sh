#!/usr/bin/env bash
# waits_lint.sh SOURCE_DIR: every wait in longhaul/ that has a time, or that only its owner ends, says why in a comment
# `// wait: REASON` on its line or in the comment right above. A thread that looks again after a while, at something
# that could notify it, has no such reason: it waits for the notification (base/mutex.h, Coordinator::notify()). All
# reasons: grep -rn '// wait:' longhaul. Tests and fixtures may wait as they like.
#
# Where nothing can notify, the reason is `// wait: polls: REASON`, and the list "Only these are polled" of
# docs/threads.md names the file, by its path below longhaul/.
#
# A loop that spins is a wait, too: one without a body whose condition does nothing but look, and one that looks at an
# atomic in its condition or as the first thing of an endless loop; so is what makes the processor pause. A loop that
# repeats compare_exchange waits for nobody. A loop that a clock ends is one, too, unless there is a wait in it.
#
# Not found, since they have no time of their own: Coordinator::wait_for_stop() without an argument, std::future and
# joins.
set -euo pipefail
cd "$1"

sources() {
  find longhaul \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.cc' ! -name '*_fixture.*' \
    ! -path 'longhaul/testing/*' -print | LC_ALL=C sort
}

status=0
sources |
  xargs awk '
    BEGIN {
      # By name, wherever it is called.
      calls = "sleep|usleep|nanosleep|clock_nanosleep|sleep_for|sleep_until|wait_for|wait_until|wait_for_stop" \
          "|wait_for_stop_or|wait_for_stop_until|wait_for_join"
      calls = calls "|yield|sched_yield|thrd_sleep|thrd_yield|timedwait|ppoll|pselect|epoll_p?wait2?|sigtimedwait" \
          "|sigwait(info)?"
      calls = calls "|sem_(timed|clock)?wait|mq_timed(send|receive)|pthread_cond_(timed|clock)?wait" \
          "|pthread_(timed|clock)join_np"
      calls = calls "|try_(lock|acquire)_(for|until)|u?alarm|setitimer|timerfd_settime|timer_settime"
      calls = calls "|io_uring_wait_cqes?(_timeout)?|io_uring_(submit_and_wait|enter)(_timeout)?"
      # Of gRPC.
      calls = calls "|AsyncNext|WaitForConnected|WaitForStateChange"
      waits = "(^|[^A-Za-z0-9_])(" calls ")\\(([^)]|$)|(^|[^A-Za-z0-9_])(yield|sched_yield)\\("
      # Those whose names mean something else, too: poll() of a queue and select() of a graph.
      waits = waits "|(^|[^A-Za-z0-9_.>])poll\\(([^)]|$)|(^|[^A-Za-z0-9_])::select\\(([^)]|$)"
      # Of a condition variable.
      waits = waits "|(\\.|->)wait\\((lock|.*mutex_?)\\)"
      # A service: what it does each time, it does whether or not there is something to do.
      waits = waits "|: LooperThread\\(|return LooperThread::loop\\("
      # Of a loop that spins.
      waits = waits "|(^|[^A-Za-z0-9_])(_mm_pause|__builtin_ia32_pause|__yield|cpu_relax|pause)\\(\\)"
      waits = waits "|__asm__|(^|[ ;])asm[ (]"
      waits = waits "|(\\.|->)(test_and_set)\\("
      look = "(\\.|->)(load|test|test_and_set|exchange)\\("
      declaration = "(" calls ")\\((const |[A-Z][A-Za-z]*&? [a-z_]+[,)])"
    }
    function complain(line, what, text) {
      printf "%s:%d: %s: %s\n", file, line, what, text
      failed = 1
    }
    function code_of(line) {
      sub(/\/\/.*/, "", line)
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      sub(/[ \t]+$/, "", line)
      return line
    }
    # The next line with code.
    function code_after(i) {
      while (++i <= count && code_of(lines[i]) == "") continue
      return i <= count ? code_of(lines[i]) : ""
    }
    # What follows the condition of a loop; the condition itself is then in `condition`.
    function body_of(line, i,    at, open, c) {
      match(line, /(^|[^A-Za-z0-9_])while \(/)
      at = RSTART + RLENGTH
      for (open = 1; open > 0 && at <= length(line); ++at) {
        c = substr(line, at, 1)
        open += c == "(" ? 1 : c == ")" ? -1 : 0
      }
      condition = substr(line, RSTART, at - RSTART)
      line = substr(line, at)
      return line ~ /^ *\{?$/ ? line code_after(i) : line
    }
    # Whether the condition does nothing but look: it calls nothing, or what is named like a question.
    function only_looks(condition) {
      sub(/.*while \(/, "", condition)
      gsub(/(^|[^A-Za-z0-9_])(is|has|was|can|should)_[a-z_]+\(/, " ", condition)
      gsub(/(done|ready|stopped|ended|finished|closed|empty|size|count|get|getpid)\(/, " ", condition)
      return condition !~ /[A-Za-z0-9_]\(/
    }
    # Whether a clock ends the loop whose condition is in this line, and no line of its body waits.
    function runs_by_clock(line, i,    indent, step) {
      if (line !~ /while \(.*now\(\) < /) return 0
      match(line, /[^ ]/)
      indent = substr(line, 1, RSTART - 1)
      step = line ~ /\} while/ ? -1 : 1
      if (step == 1 && line !~ /\{$/) return line !~ waits && code_after(i) !~ waits
      while ((i += step) >= 1 && i <= count && lines[i] !~ ("^" indent "[^ ]")) if (code_of(lines[i]) ~ waits) return 0
      return 1
    }
    function spins(line, i,    body) {
      if (line ~ /(while \((true|1)\)|for \(;;\)) \{$/) return code_after(i) ~ ("if \\(.*" look)
      if (line ~ /^ *for \(.*;.*;.*\{?$/ && line ~ ("^[^;]*;[^;]*" look "[^;]*;")) return 1
      if (line !~ /(^|[^A-Za-z0-9_])while \(/) return 0
      body = body_of(line, i)
      if (condition ~ /compare_exchange/) return 0
      if (condition ~ look) return 1
      if (line ~ /\} while/ || !only_looks(condition)) return 0
      return body ~ /^ *(\{ *\}|;|continue;|\{ *;|\{ *continue;)/
    }
    function check_line(i,    line, is_wait, has_reason) {
      if (lines[i] ~ /^ *\/\//) {
        if (lines[i] ~ /\/\/ wait: ./) reason = i
        return
      }
      line = code_of(lines[i])
      is_wait = (line ~ waits && line !~ declaration) || spins(line, i) || runs_by_clock(line, i)
      has_reason = lines[i] ~ /\/\/ wait: ./
      if (is_wait && !has_reason && !reason) complain(i, "a wait without a reason (// wait: ...)", lines[i])
      if (!is_wait && has_reason) complain(i, "a reason without a wait", lines[i])
      if (!is_wait && reason) complain(reason, "a reason without a wait below it", lines[i])
      reason = 0
    }
    function check_file(    i) {
      reason = 0
      for (i = 1; i <= count; i++) check_line(i)
      count = 0
    }
    FNR == 1 {
      check_file()
      file = FILENAME
    }
    { lines[count = FNR] = $0 }
    END {
      check_file()
      exit failed
    }' || status=1

polled() {
  sources | xargs grep -l '// wait: polls: .' | sed 's,^longhaul/,,'
}
# Those of the list, which ends where the next rule begins.
told() {
  awk '/^- / { on = 0 } /Only these are polled:$/ { on = 1 } on' docs/threads.md |
    grep -oE '`[a-z_/]+\.(cc|h)`' | tr -d '`' | LC_ALL=C sort -u
}
diff <(told) <(polled) || {
  echo 'docs/threads.md: "Only these are polled" (<) does not name the files with a "// wait: polls:" (>)'
  status=1
}
exit $status
