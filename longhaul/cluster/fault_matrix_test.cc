// The fault matrix of docs/reliability.md: who dies or is cut off, at which moment; what must hold afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "longhaul/cluster/cluster_saves_fixture.h"
#include "longhaul/cluster/supervised_cluster_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

enum class Who {
  kWorkerDies,
  kPsDies,
  kChiefDies,
  kAllDie,
  kPsIsCutOffFor1s,
  kPsIsCutOffFor10s,
  kWorkerIsCutOffFor10s,
  kPsStandsStillFor10s,  // as by SIGSTOP: nobody hears it
  kWorkerStandsStillFor10s
};
enum class At { kIdle, kReading, kPrepared, kBetweenCommits, kSnapshot, kSaving, kRestoring };

// Whether the programs train in a MonitoredSession, and not under a Supervisor.
using MatrixCell = std::tuple<Who, At, bool>;

bool is_of_worker(Who who) {
  return who == Who::kWorkerDies || who == Who::kWorkerIsCutOffFor10s || who == Who::kWorkerStandsStillFor10s;
}

bool is_cut_off(Who who) {
  return who != Who::kWorkerDies && who != Who::kPsDies && who != Who::kChiefDies && who != Who::kAllDie;
}

bool stands_still(Who who) {
  return who == Who::kPsStandsStillFor10s || who == Who::kWorkerStandsStillFor10s;
}

bool a_ps_dies(Who who) {
  return who == Who::kPsDies || who == Who::kAllDie;
}

// Of a live model. A line that is mended after a second keeps all sessions, and what happens to one task ends no
// session of the others; but all use the ps.
bool chief_may_lose_a_session(Who who) {
  return a_ps_dies(who) || who == Who::kChiefDies || who == Who::kPsIsCutOffFor10s || who == Who::kPsStandsStillFor10s;
}

bool second_may_lose_a_session(Who who) {
  return a_ps_dies(who) || who == Who::kPsStandsStillFor10s || is_of_worker(who);
}

Seconds time_away(Who who) {
  return Seconds{is_cut_off(who) && who != Who::kPsIsCutOffFor1s ? 10.0 : 1.0};
}

std::string victim_of(Who who) {
  if (is_of_worker(who)) return kWorker1;
  return who == Who::kChiefDies ? kWorker : kPs1;
}

// Of a step of the victim, if that makes steps; else of the chief's. Snapshots and restores are the chief's.
MessageKind message_at(Who who, At at) {
  const std::string master = is_of_worker(who) && at <= At::kBetweenCommits ? kWorker1 : kWorker;
  if (at == At::kReading) return {.from = master, .to = kPs1, .method = "RunPart"};
  if (at == At::kPrepared) return {.from = kPs1, .to = master, .method = "RunPart", .is_reply = true};
  if (at == At::kSnapshot) return {.from = master, .to = kPs1, .method = "Freeze"};
  if (at == At::kSaving) return {.from = master, .to = kPs1, .method = "WriteShard"};
  return {.from = master, .to = kPs1, .method = at == At::kRestoring ? "RunPart" : "Commit"};
}

// Which of these it is. A restore's is the third of a new session: after the looks whether the model is ready, and what
// of it has no value.
uint64_t number_at(At at) {
  return at == At::kRestoring ? 3 : 1;
}

class FaultMatrix : public ::testing::TestWithParam<MatrixCell> {
 protected:
  // The task comes back, and the line is mended.
  void strike_now(Who who) {
    if (who == Who::kAllDie) return kill_all();
    if (!is_cut_off(who)) return cluster_.restart_after(victim_of(who), time_away(who));
    if (stands_still(who)) return stand_still(who);
    cut_now(victim_of(who), victim_of(who) == kPs1 ? kWorker : kPs1, time_away(who));
  }
  void cut_now(const std::string& one, const std::string& other, Seconds time) {
    SimulatedNetwork& network = cluster_.network();
    network.cut(one, other);
    network.cut(other, one);
    cluster_.clock().at(cluster_.clock().now() + time, [&network, one, other] {
      network.mend(one, other);
      network.mend(other, one);
    });
  }
  void stand_still(Who who) {
    for (const std::string& task : TrainingCluster::tasks()) {
      if (task != victim_of(who)) cut_now(victim_of(who), task, time_away(who));
    }
  }
  void kill_all() {
    for (const std::string& task : TrainingCluster::tasks()) {
      if (cluster_.network().is_alive(task)) cluster_.restart_after(task, Seconds{1});
    }
  }

  // With the message of that moment, if the victim sends or gets it; else right after it.
  void strike(Who who, At at) {
    if (at == At::kIdle) return strike_now(who);
    if (at == At::kRestoring) {
      cluster_.restart_after(kPs1, Seconds{1});
      cluster_.pass(Seconds{0.2});  // until the steps under way have ended
    }
    const NetworkFault fault = fault_at(who, message_at(who, at), number_at(at));
    cluster_.network().plan(fault);
    ASSERT_TRUE(cluster_.within(Seconds{60}, [&] { return cluster_.network().faults_to_come() == 0; }));
    if (at == At::kRestoring) {
      EXPECT_THAT(log_.text(), ::testing::Not(::testing::HasSubstr("Restored model from"))) << "it is over";
    }
    if (at == At::kBetweenCommits) {
      EXPECT_TRUE(first_ps_has_its_commit()) << "not a moment between two commits";
    }
    if (fault.kind == NetworkFault::Kind::kDelay) {
      strike_now(who);
    } else if (who == Who::kAllDie) {
      kill_all();  // the others
    } else if (stands_still(who)) {
      stand_still(who);
    }
  }
  // Ps 0 was sent as many commits as ps 1, or one more.
  bool first_ps_has_its_commit() {
    size_t first = 0, second = 0;
    for (const SimulatedNetwork::Sent& sent : cluster_.network().sent()) {
      if (sent.is_reply || sent.method != "Commit") continue;
      first += sent.to == kPs ? 1 : 0;
      second += sent.to == kPs1 ? 1 : 0;
    }
    return first > 0 && first + 1 >= second;
  }

  static NetworkFault fault_at(Who who, const MessageKind& message, uint64_t number) {
    using Kind = NetworkFault::Kind;
    const std::string victim = victim_of(who);
    if (message.from != victim && message.to != victim)
      return {.kind = Kind::kDelay, .message = number, .time = Seconds{0}, .of = message};
    const Kind death = message.from == victim ? Kind::kKillSenderBefore : Kind::kKillReceiverBefore;
    return {.kind = is_cut_off(who) ? Kind::kCut : death, .message = number, .time = time_away(who), .of = message};
  }

  // Each is what the model was between two steps, and nothing is left of saves that failed.
  void expect_whole_checkpoints() {
    const auto found = find_checkpoints(FileSystem::real(), cluster_.logdir(), "");
    EXPECT_FALSE(found.empty());
    for (const FoundCheckpoint& checkpoint : found) {
      const BundleReader reader(FileSystem::real(), checkpoint.prefix);
      EXPECT_THAT(reader.verify(), ::testing::IsEmpty()) << checkpoint.prefix;
      const CountedSteps saved{reader.read("a").item<double>(), reader.read("b").item<double>(),
                               reader.read("global_step").item<int64_t>()};
      EXPECT_TRUE(saved.is_whole()) << checkpoint.prefix << ": " << saved.a << ", " << saved.b;
      EXPECT_EQ(saved.step, checkpoint.step) << checkpoint.prefix;
    }
    EXPECT_THAT(leftovers_in(cluster_.logdir()), ::testing::IsEmpty());
  }

  // Steps of a MonitoredSession of which nobody knew what became of them, which the log says.
  int64_t said_to_be_unknown() const {
    const std::string text = log_.text(LogLevel::kWarning), said = "perhaps for the second time";
    int64_t times = 0;
    for (size_t at = text.find(said); at != text.npos; at = text.find(said, at + 1)) ++times;
    return times;
  }
  bool both_go_on(const TrainingProgram& chief, const TrainingProgram& second, Seconds most) {
    const int64_t of_chief = chief.steps() + 4, of_second = second.steps() + 4;
    return cluster_.within(most, [&] { return chief.steps() >= of_chief && second.steps() >= of_second; });
  }
  void end(TrainingProgram& program) {
    program.end();
    EXPECT_TRUE(cluster_.within(Seconds{120}, [&] { return program.has_ended(); }));
    EXPECT_EQ(program.error(), "");
  }

  const LogRecorder log_;
  const ThreadsEnd threads_end_;
  SupervisedCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

TEST_P(FaultMatrix, EachStepIsMadeOnceAndTheRunGoesOn) {  // RC-2, unlike RC-3, unlike RC-7, unlike RC-14
  const auto [who, at, is_monitored] = GetParam();
  TrainingProgram chief(cluster_, {.is_monitored = is_monitored}),
      second(cluster_, {.task = kWorker1, .is_chief = false, .is_monitored = is_monitored});
  ASSERT_TRUE(both_go_on(chief, second, Seconds{60}));
  ASSERT_TRUE(cluster_.within(Seconds{30}, [&] { return cluster_.saved_step() > 0; }));
  ASSERT_NO_FATAL_FAILURE(strike(who, at));
  const int64_t saved = cluster_.saved_step();
  EXPECT_TRUE(both_go_on(chief, second, Seconds{60}));
  end(second);
  end(chief);
  const auto found = cluster_.look();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_whole()) << found->a << ", " << found->b << ", step " << found->step;
  const int64_t known = chief.steps() + second.steps() + chief.committed() + second.committed();
  EXPECT_LE(found->step, known + chief.unknown() + second.unknown() + said_to_be_unknown()) << "a step was made twice";
  const bool is_set_back = a_ps_dies(who) || at == At::kRestoring;
  EXPECT_GE(found->step, is_set_back ? saved : known) << "a step was lost";
  if (at != At::kRestoring) {
    EXPECT_TRUE(chief.losses() == 0 || chief_may_lose_a_session(who)) << chief.losses();
    EXPECT_TRUE(second.losses() == 0 || second_may_lose_a_session(who)) << second.losses();
  }
  expect_whole_checkpoints();
  EXPECT_TRUE(cluster_.cluster().nothing_is_left(Seconds{120}));
}

std::string name_of_cell(const ::testing::TestParamInfo<MatrixCell>& info) {
  static const char* const who[] = {"WorkerDies",
                                    "PsDies",
                                    "ChiefDies",
                                    "AllDie",
                                    "PsIsCutOffFor1s",
                                    "PsIsCutOffFor10s",
                                    "WorkerIsCutOffFor10s",
                                    "PsStandsStillFor10s",
                                    "WorkerStandsStillFor10s"};
  static const char* const at[] = {"Idle", "Reading", "Prepared", "BetweenCommits", "Snapshot", "Saving", "Restoring"};
  return std::string(who[static_cast<size_t>(std::get<0>(info.param))]) + "_" +
         at[static_cast<size_t>(std::get<1>(info.param))] + (std::get<2>(info.param) ? "_Monitored" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Cells, FaultMatrix,
    ::testing::Combine(::testing::Values(Who::kWorkerDies, Who::kPsDies, Who::kChiefDies, Who::kAllDie,
                                         Who::kPsIsCutOffFor1s, Who::kPsIsCutOffFor10s, Who::kWorkerIsCutOffFor10s,
                                         Who::kPsStandsStillFor10s, Who::kWorkerStandsStillFor10s),
                       ::testing::Values(At::kIdle, At::kReading, At::kPrepared, At::kBetweenCommits, At::kSnapshot,
                                         At::kSaving, At::kRestoring),
                       ::testing::Bool()),
    name_of_cell);

}  // namespace
}  // namespace longhaul
