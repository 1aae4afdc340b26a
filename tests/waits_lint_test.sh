#!/usr/bin/env bash
# waits_lint_test.sh SOURCE_DIR: shows that waits_lint.sh accepts a good tree and rejects each kind of wait without a
# reason.
. "$1/tests/lint_fixture.sh"

# threads [PATH]: the page says that this file polls.
mkdir "$tree/docs"
threads() {
  printf '%s\n' '- **Waits.** Only these are polled:' "  - others (${1:+\`$1\`})" '- **Calls** (`io/call.cc`)' \
    >"$tree/docs/threads.md"
}
threads

# put PATH LINES: the tree is that one file.
put() {
  rm -rf "$tree/longhaul"
  mkdir -p "$tree/$(dirname "$1")"
  printf '%b\n' "$2" >"$tree/$1"
}
accepts() {
  put "$1" "$2"
  passes "$1 with $2"
}
rejects() {
  put "$1" "$2"
  complains "$1 with $2"
  [[ $said == "$1:"*": a ${3:-wait without a reason}"* ]] || failed "$1: said '$said'"
}

for wait in 'std::this_thread::sleep_for(kLook)' '::usleep(1000)' 'usleep(1000)' 'nanosleep(&time, nullptr)' \
  'sleep(1)' \
  'std::this_thread::sleep_until(due)' 'std::this_thread::yield()' 'changed_.wait_for(mutex_, kLook)' \
  'changed_.wait(mutex_)' \
  'signal->changed.wait(signal->mutex)' 'cond_.wait(lock)' 'clock->wait_until(changed, mutex, deadline)' \
  'coord.wait_for_stop(Seconds{0.1})' 'while (!coord().wait_for_stop(kLook)) look()' \
  'coord.wait_for_stop_or(is_due)' 'coord.wait_for_stop_until(due)' \
  'poll(&reading, 1, 100)' '::poll(&reading, 1, -1)' 'ppoll(&reading, 1, &time, nullptr)' \
  'epoll_wait(fd, &event, 1, 100)' \
  '::select(1, &set, nullptr, nullptr, &time)' 'pselect(1, &set, nullptr, nullptr, &time, nullptr)' \
  'sigtimedwait(&set, 0, &t)' \
  'sem_timedwait(&semaphore, &time)' 'pthread_cond_timedwait(&cond, &mutex, &time)' 'mutex.try_lock_for(kLook)' \
  'semaphore.try_acquire_for(kLook)' 'future.wait_for(kLook)' 'io_uring_wait_cqe(&ring, &cqe)' 'alarm(1)' \
  'queue_.AsyncNext(&tag, &ok, kLook)' 'channel->WaitForConnected(deadline)' 'channel->WaitForStateChange(state, due)' \
  'return LooperThread::loop(coord, Seconds{0.1}, look)' 'changed_.wait_for(\n      mutex_, kLook)'; do
  rejects longhaul/io/file.cc "  $wait;"
  rejects longhaul/io/file.h "  $wait;"
  rejects longhaul/io/file.cc "  // What is to come.\n  $wait;"
  accepts longhaul/io/file.cc "  // wait: for the kernel\n  $wait;"
  accepts longhaul/io/file.cc "  // wait: for the kernel, which takes\n  // its time\n  $wait;"
  accepts longhaul/io/file_test.cc "  $wait;"
  accepts longhaul/io/file_fixture.h "  $wait;"
  accepts longhaul/io/file_fixture.cc "  $wait;"
  accepts longhaul/testing/clock.cc "  $wait;"
  accepts longhaul/io/file.cc "  // $wait"
done
for loop in 'while (!done_.load()) _mm_pause();' 'while (!done_.load()) {\n  }' 'while (!done_) {}' \
  'while (!done_);' 'while (!is_done(1)) {}' 'while (!thread.ended() && !queue.empty()) {\n  }' \
  'while (!done_) continue;' 'while (!done_)\n    ;' 'while (!done_) {\n    // Soon.\n  }' \
  'while (!done_) {\n    ;\n  }' \
  'while (getpid() == owner.load()) std::this_thread::yield();' \
  'while (place->load(std::memory_order_acquire) < 2) look();' \
  'while (flag.test_and_set()) {}' 'while (taken_.exchange(true)) {\n    look();\n  }' '} while (!done_.test());' \
  'for (;;) {\n    if (done_.load()) break;\n  }' 'while (true) {\n    if (done_.load()) return;\n  }' \
  'for (int i = 0; !done_.load(); ++i) look();' 'if (busy) __builtin_ia32_pause();' 'asm volatile("pause");' \
  '__asm__ __volatile__("yield");' 'pause();'; do
  rejects longhaul/io/file.cc "  $loop"
  accepts longhaul/io/file.cc "  // wait: for a handler of a signal\n  $loop"
  accepts longhaul/io/file_test.cc "  $loop"
done
for loop in 'while (left > 0) left -= write();' 'while (write_next()) {\n  }' \
  'while (at < before && !at_.compare_exchange_weak(before, at)) {\n  }' \
  'while (!ended()) {\n    // Once more.\n    step();\n  }' 'do {\n    step();\n  } while (!names_.contains(name));' \
  'for (int i = 0; i < size; ++i) sum += counts[i].load();' 'while (true) {\n    if (step()) break;\n  }' \
  'while (!sv.should_stop()) train();' 'const bool was = taken_.exchange(true);' \
  'const Seconds pause = time_to_retry();'; do
  accepts longhaul/io/file.cc "  $loop"
done
accepts longhaul/io/file.cc '  changed_.wait_for(mutex_, left);  // wait: the timeout'
accepts longhaul/io/file.cc '  clock.wait_for(changed_, mutex_,  // wait: the timeout\n                 left);'
rejects longhaul/io/file.cc '  changed_.wait_for(mutex_, left);  // wait:'
rejects longhaul/io/file.cc '  changed_.wait_for(mutex_, left);  // the timeout'
rejects longhaul/io/file.cc '  // wait: the timeout\n  lock();\n  changed_.wait_for(mutex_, left);' \
  'reason without a wait below it'
rejects longhaul/io/file.cc '  // wait: the timeout\n\n  lock();' 'reason without a wait below it'
rejects longhaul/io/file.cc '  lock();  // wait: the timeout' 'reason without a wait'
rejects longhaul/io/file.cc '    : LooperThread(coord, Seconds{0.1}, {}, "lh-file") {}'
accepts longhaul/io/file.cc '    : LooperThread(coord, Seconds{60}, {}, "lh-file") {}  // wait: a report each minute'


# A loop that a clock ends.
for loop in 'do {\n    look();\n  } while (Clock::real().now() < end);' \
  'while (!done_ && clock.now() < end) {\n    look();\n  }' 'while (clock_.now() < end) look();' \
  'while (clock_.now() < end)\n    look();' \
  'while (clock.now() < end) {\n    look();\n  }\n  // wait: after it\n  usleep(1);'; do
  rejects longhaul/io/file.cc "  usleep(1);  // wait: before it\n  $loop"
done
for loop in 'while (!done_ && clock.now() < end) clock.wait_until(changed_, mutex_, end);  // wait: the end' \
  'while (clock.now() < end) {\n    look();\n    usleep(1);  // wait: a moment\n  }' \
  'do {\n    look();\n  } while (clock.now() < end);  // wait: for a moment' \
  'do {\n    usleep(1);  // wait: a moment\n  } while (clock.now() < end);'; do
  accepts longhaul/io/file.cc "  $loop"
done

# What polls, and what the page says of it.
put longhaul/io/file.cc '  usleep(1);  // wait: polls: the disk'
complains "a poll that the page does not name"
[[ $said == *'> io/file.cc'*'does not name the files'* ]] || failed "said '$said'"
threads io/file.cc
passes "a poll that the page names"
put longhaul/io/file.cc '  usleep(1);  // wait: for the disk'
complains "a poll of the page that is none"
[[ $said == *'< io/file.cc'*'does not name the files'* ]] || failed "said '$said'"
threads

# What only has such a name.
accepts longhaul/io/file.h '  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override;'
accepts longhaul/io/file.h \
  '  void wait_for(Mutex& mutex, Seconds timeout);\n  bool wait_for_stop(Seconds timeout) const;'
accepts longhaul/io/file.h '  bool wait_for_stop_or(const std::function<bool()>& is_due, Seconds timeout) const;'
accepts longhaul/io/file.h '  bool wait_for_stop_until(Seconds time) const;'
accepts longhaul/io/file.cc '  if (const auto finished = poll()) return *finished;\n  const auto next = queue_->poll();'
accepts longhaul/io/file.cc '  const Output rows = ops::select(scope, x, 0);\n  bool select(Backward& b) {'
accepts longhaul/io/file.cc \
  '  wait_for_room(variables, deadline);\n  saver.wait_until_idle(timeout);\n  coord.wait_for_stop();'
accepts longhaul/io/file.cc '  throw_errno(errno, "poll(a, 1, 0)");\n  log_info("usleep(1) ");'
echo "the lint accepts and rejects as it should"
