#include "longhaul/train/hooks/hang_watch_hook.h"

#include <thread>

#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {
namespace {

class HangWatchHookTest : public HookTest {
 protected:
  static std::unique_ptr<HangWatchHook> hook_after(Seconds time, Clock& clock) {
    return std::make_unique<HangWatchHook>(HangWatchHookOptions{.hang = {.after = time}, .clock = &clock});
  }
  void pass(Seconds time) { clock.advance_before_hang_watch(time, Seconds{0.5}); }
  void pass_until_it_hangs() {
    const Seconds deadline = Clock::real().now() + Seconds{60};
    while (!hangs() && Clock::real().now() < deadline) pass(Seconds{1});
    EXPECT_TRUE(hangs());
  }
  bool hangs() const { return log.text(LogLevel::kError).find("the training hangs") != std::string::npos; }

  const LogRecorder log;
};

TEST_F(HangWatchHookTest, RunsThatDoNotGoOnAreReported) {
  const auto hook = hook_after(Seconds{20}, clock);
  start(*hook);
  for (int i = 0; i < 10; ++i) {
    train(*hook);
    pass(Seconds{10});
  }
  EXPECT_FALSE(hangs());
  pass_until_it_hangs();
  hook->end(*session);
}

TEST_F(HangWatchHookTest, WithoutASessionNothingIsMissed) {
  const auto hook = hook_after(Seconds{20}, clock);
  begin(*hook);
  pass(Seconds{100});
  hook->after_create_session(*session, coord);
  hook->end_watch();  // it is lost
  pass(Seconds{100});
  EXPECT_FALSE(hangs());
  hook->after_create_session(*session, coord);
  pass_until_it_hangs();
}

TEST_F(HangWatchHookTest, RefusesWhatIsNoTime) {
  EXPECT_THROW(hook_after(Seconds{-1}, clock), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
