#include "longhaul/train/divergence/way_back.h"

#include <limits>

#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNanLoss = std::numeric_limits<double>::quiet_NaN();

class WayBackTest : public ::testing::Test {
 protected:
  std::shared_ptr<RunJournal> open_journal() {
    auto journal = std::make_shared<RunJournal>(directory.path(), RunJournalOptions{.clock = &clock});
    journal->begin();
    return journal;
  }
  void save(int64_t step) { saver.save(*session, directory.file("model.ckpt"), step); }
  WayBack::Place place() { return {.journal = journal, .saver = &saver, .search = {.directory = directory.path()}}; }
  std::vector<std::string> texts(const std::string& tag) const {
    std::vector<std::string> found;
    for (const proto::Event& event : events_in_directory(directory.path())) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() == tag) found.push_back(value.tensor().string_val(0));
      }
    }
    return found;
  }
  std::string at(int64_t step) { return directory.file("model.ckpt-" + std::to_string(step)); }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  Graph graph;
  Scope root{graph};
  Variable weight = ops::variable(root, "weight", Tensor::scalar(1.0f));
  Saver saver{{.graph = &graph, .clock = &clock}};
  std::unique_ptr<testing::ScriptedSession> session = make_scripted_session(graph);
  std::shared_ptr<RunJournal> journal = open_journal();
  std::vector<int64_t> told;
  DivergenceOptions options{
      .margin_steps = 5, .on_rollback = [this](Session&, const Rollback& rollback) { told.push_back(rollback.count); }};
};

TEST_F(WayBackTest, ItGoesToTheNewestCheckpointBeforeTheMargin) {
  session->run(weight.initializer());
  for (const int64_t step : {10, 20, 30}) save(step);
  WayBack way_back(options);
  way_back.session_begins(place(), *session, "", 0);
  EXPECT_NO_THROW(way_back.look(24, 1));
  try {
    way_back.look(25, kNanLoss);
    FAIL() << "it is bad";
  } catch (const RollBackError& error) {
    EXPECT_EQ(error.rollback().to_text(), "1 25 26 20 nan 1 model.ckpt-20");
  }
  EXPECT_TRUE(journal->is_skipped(at(30)));
  EXPECT_FALSE(journal->is_skipped(at(20)));
  way_back.session_begins(place(), *session, at(20), 20);
  EXPECT_THROW(way_back.look(24, kNanLoss), RollBackError) << "to 10: 20 is too near";
  EXPECT_EQ(journal->history().rollbacks().all().back().restored_step, 10);
  way_back.session_begins(place(), *session, at(10), 10);
  EXPECT_THROW(way_back.look(14, kNanLoss), DivergedError) << "there is none";
}

TEST_F(WayBackTest, AnEndWithoutAGoodCheckpointIsInTheJournalAndTheEventsAndTheNextStartTakesTheOldest) {
  session->run(weight.initializer());
  for (const int64_t step : {21, 23, 27}) save(step);
  FileWriter events(directory.path(), {.clock = &clock});
  WayBack way_back(options);
  WayBack::Place told_in_events = place();
  told_in_events.events = &events;
  way_back.session_begins(told_in_events, *session, "", 0);
  const std::string why = error_of<DivergedError>([&] { way_back.look(25, kNanLoss); });
  EXPECT_THAT(why, HasSubstr("The next start restores the oldest checkpoint that it finds, now " + at(21) +
                             ", whose weights may be bad already"));
  events.close();
  EXPECT_THAT(texts(kDivergedTag), ElementsAre(why));

  journal = open_journal();
  EXPECT_EQ(journal->history().rollbacks().count(), 0) << "none that counts";
  EXPECT_EQ(journal->history().rollbacks().undone_after(), 20);
  FallBackOptions search{.directory = directory.path()};
  search.skip_reason = [&](const std::string& prefix) -> std::optional<SkipReason> {
    const std::optional<std::string> reason = journal->skip_reason(prefix);
    return reason ? std::optional(SkipReason(*reason, journal->is_undone(prefix))) : std::nullopt;
  };
  EXPECT_EQ(restore_newest_intact(saver, *session, search).restored, at(21));
  save(19);  // as if somebody had put it there
  EXPECT_EQ(restore_newest_intact(saver, *session, search).restored, at(19)) << "before the margin";
}

TEST_F(WayBackTest, AnEndWithoutAnyCheckpointSaysThatTheNextStartBeginsAnew) {
  WayBack way_back(options);
  way_back.session_begins(place(), *session, "", 0);
  EXPECT_THAT(error_of<DivergedError>([&] { way_back.look(3, kNanLoss); }), HasSubstr("the next start begins anew"));
}

// A program that swallows the error must not make another rollback of it.
TEST_F(WayBackTest, ASecondLookThrowsTheSame) {
  session->run(weight.initializer());
  save(10);
  WayBack way_back(options);
  way_back.session_begins(place(), *session, "", 0);
  EXPECT_THROW(way_back.look(20, kNanLoss), RollBackError);
  EXPECT_THROW(way_back.look(21, 1), RollBackError);
  EXPECT_EQ(journal->history().rollbacks().all().size(), 1u);
}

// Without values in checkpoints.
TEST_F(WayBackTest, TheNameOfTheCheckpointTellsWhichRollbacksCameBefore) {
  session->run(weight.initializer());
  save(10);
  save(20);
  WayBack way_back(options);
  way_back.session_begins(place(), *session, "", 0);
  EXPECT_THROW(way_back.look(30, kNanLoss), RollBackError);
  EXPECT_TRUE(way_back.has_to_catch_up(journal.get(), at(20)));
  way_back.session_begins(place(), *session, at(20), 20);
  EXPECT_THAT(told, ElementsAre(1));
  told.clear();
  way_back.session_begins(place(), *session, at(25), 25);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(way_back.next_step(20), 31);
}

TEST_F(WayBackTest, ItNeedsAJournalAndCheckpoints) {
  WayBack way_back(options);
  WayBack::Place without = place();
  without.journal = nullptr;
  EXPECT_THAT(error_of<Error>([&] { way_back.session_begins(without, *session, "", 0); }), HasSubstr("keep_journal"));
  without = place();
  without.saver = nullptr;
  EXPECT_THAT(error_of<Error>([&] { way_back.session_begins(without, *session, "", 0); }),
              HasSubstr("needs checkpoints"));
}

TEST_F(WayBackTest, OptionsThatMeanNothingAreRefused) {
  EXPECT_THROW(WayBack({.margin_steps = -1}), InvalidArgumentError);
  EXPECT_THROW(WayBack({.max_rollbacks = -1}), InvalidArgumentError);
  EXPECT_THROW(WayBack({.within_steps = -1}), InvalidArgumentError);
  EXPECT_THROW(WayBack({.watch = {.window = 0}}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
