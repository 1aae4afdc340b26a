#include "longhaul/events/independent_reader_fixture.h"
#include "longhaul/events/summary.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

// What TensorBoard shows of a training that was killed and started again.
namespace longhaul {
namespace {

using independent::CurveReader;
using independent::Rule;
using ::testing::ElementsAre;

class RestartCurves : public SupervisorFixture {
 protected:
  RestartCurves() {
    add_step();
    options.services.save_at_end = false;
    options.save_model_secs = options.save_summaries_secs = Seconds{0};
  }

  // Trains up to step `end` and logs each step; takes a checkpoint at step 3.
  void train_to(int64_t end) {
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      while (read_step(session) < end) {
        session.run(train);
        const int64_t now = read_step(session);
        sv.summary_writer()->add_scalar("loss", static_cast<float>(now), now);
        sv.summary_writer()->add_summary(text_summary("sample", "text"), now);
        if (now == 3) sv.saver()->save(session, sv.save_path(), step);
      }
    });
  }
  int64_t read_step(Session& session) { return session.run(step).item<int64_t>(); }

  std::vector<int64_t> steps_shown(Rule rule, const std::string& tag) {
    return CurveReader::read(directory.path(), rule).at(tag).steps();
  }
};

TEST_F(RestartCurves, EveryRunSaysWhereItStarts) {  // TB-5
  train_to(5);
  restart();
  train_to(4);
  std::vector<int64_t> starts;
  for (const auto& event : independent::events_in(directory.path())) {
    const bool is_start = event.kind == 7 && independent::field_of(event.contents, 1).number == 1;
    if (is_start) starts.push_back(event.step);
  }
  EXPECT_THAT(starts, ElementsAre(0, 3));
}

TEST_F(RestartCurves, AreOneForEachTagByBothRules) {  // TB-3, TB-4, TB-5
  train_to(5);
  restart();
  train_to(4);
  for (const char* tag : {"loss", "sample"}) {
    EXPECT_THAT(steps_shown(Rule::kStart, tag), ElementsAre(1, 2, 4)) << tag;
    EXPECT_THAT(steps_shown(Rule::kPerTag, tag), ElementsAre(1, 2, 3, 4)) << tag;
  }
}

}  // namespace
}  // namespace longhaul
