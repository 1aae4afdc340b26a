#include "longhaul/console/restarts/restarting_run.h"

#include <fmt/format.h>
#include <string.h>

#include <map>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/console/restarts/child_program.h"
#include "longhaul/console/restarts/forwarded_signals.h"
#include "longhaul/console/text/times.h"

namespace longhaul::console {
namespace {

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

class RestartingRun {
 public:
  RestartingRun(const std::vector<std::string>& command, const RestartOptions& options, const SayEvent& say)
      : command_(command), grace_(options.grace), say_(say), policy_(options) {}

  int run() {
    while (true) {
      const Seconds began = Clock::real().now();
      const ProgramEnd end = run_once();
      take_pending_signals();
      const Seconds lasted = Clock::real().now() - began;
      ++ends_[end.to_string()];
      const RestartPolicy::Decision decision = policy_.after(end, lasted, stop_ != 0);
      tell_end(end, lasted, decision);
      if (stop_ != 0 || decision.pause) {
        end_leftovers(signals_, grace_, [&](const ReceivedSignal& signal) { pass_on(signal, nullptr); });
      }
      if (!decision.pause || !pause(*decision.pause)) return finish(end);
    }
  }

 private:
  // The program from its start to its end.
  ProgramEnd run_once() {
    std::optional<ChildProgram> program;
    try {
      program.emplace(signals_, command_);
    } catch (const Error& error) {
      if (starts_ == 0) throw InvalidArgumentError(error.what());
      say(error.what(), {{"event", "not started"}, {"error", error.what()}});
      return {.status = 127, .was_started = false};
    }
    ++starts_;
    say(fmt::format("start {}: {}, process {}", starts_, command_[0], program->pid()),
        {{"event", "started"}, {"start", starts_}, {"process", program->pid()}});
    while (true) {
      if (const auto end = program->reap()) return *end;
      if (const auto signal = signals_.wait()) pass_on(*signal, &*program);
    }
  }

  void pass_on(const ReceivedSignal& signal, const ChildProgram* program) {
    if (is_stop_signal(signal.number)) stop_ = signal.number;
    if (program == nullptr) return;
    if (!signal.is_of_terminal) program->send(signal.number);
    say(fmt::format("{} is passed on to the program{}", signal_text(signal.number),
                    stop_ != 0 ? ", which is not started again" : ""),
        {{"event", "signal"}, {"signal", signal.number}, {"stops", stop_ != 0}});
  }

  // Those that came while the program ended.
  void take_pending_signals() {
    while (const auto signal = signals_.wait(Seconds{0})) pass_on(*signal, nullptr);
  }

  // False: a stop signal came.
  bool pause(Seconds time) {
    const Seconds deadline = Clock::real().now() + time;
    while (stop_ == 0) {
      const Seconds left = deadline - Clock::real().now();
      if (!(left > Seconds{0})) return true;  // of a NaN too
      if (const auto signal = signals_.wait(left)) pass_on(*signal, nullptr);
    }
    return false;
  }

  void tell_end(const ProgramEnd& end, Seconds lasted, const RestartPolicy::Decision& decision) {
    std::string text = fmt::format("{} after {}", end.to_string(), duration_text(lasted));
    if (end.signal == 9 && stop_ == 0) text += "; if nobody sent it, the kernel was out of memory (dmesg)";
    if (decision.pause) {
      text += fmt::format("; it is started again in {}, {} restart{} left", duration_text(*decision.pause),
                          policy_.restarts_left(), policy_.restarts_left() == 1 ? " is" : "s are");
    } else {
      text += "; not started again: " + decision.why;
    }
    Json json = {{"event", "ended"},
                 {"end", end.to_string()},
                 {"exit_status", end.exit_status()},
                 {"lasted", lasted.count()},
                 {"pause", decision.pause ? Json(decision.pause->count()) : Json()},
                 {"restarts_left", policy_.restarts_left()}};
    if (!decision.pause) json["why"] = decision.why;
    say(text, json);
  }

  int finish(const ProgramEnd& last) {
    std::string ends;
    for (const auto& [end, count] : ends_) {
      ends += fmt::format("{}{}{}", ends.empty() ? "" : ", ", end, count > 1 ? fmt::format(" ({} times)", count) : "");
    }
    const Seconds lasted = Clock::real().now() - began_;
    say(fmt::format("{} start{} in {}: {}; it ends with exit status {}", starts_, starts_ == 1 ? "" : "s",
                    duration_text(lasted), ends, last.exit_status()),
        {{"event", "finished"},
         {"starts", starts_},
         {"lasted", lasted.count()},
         {"ends", ends_},
         {"stop_signal", stop_ != 0 ? Json(stop_) : Json()},
         {"exit_status", last.exit_status()}});
    return last.exit_status();
  }

  void say(const std::string& text, const Json& json) const {
    if (say_) say_(text, json);
  }

  const std::vector<std::string>& command_;
  const Seconds grace_;
  const SayEvent& say_;
  const ForwardedSignals signals_;
  const Seconds began_ = Clock::real().now();
  RestartPolicy policy_;
  std::map<std::string, int> ends_;  // how often it ended so
  int starts_ = 0;
  int stop_ = 0;  // the stop signal that was received; 0: none
};

}  // namespace

int run_restarting(const std::vector<std::string>& command, const RestartOptions& options, const SayEvent& say) {
  return RestartingRun(command, options, say).run();
}

}  // namespace longhaul::console
