#include "longhaul/train/saved_state/environment_record.h"

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/testing/memory_growth.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What the runtime would say, for as long as this lives.
class Facts {
 public:
  explicit Facts(Environment facts) {
    install_environment([facts] { return facts; });
  }
  ~Facts() { install_environment({}); }
};

TEST(EnvironmentRecord, TellsEachDifferenceByName) {
  const Environment then{{"libtorch", "1.13.0"}, {"threads", "2"}, {"gone", "x"}};
  const Environment now{{"libtorch", "1.13.0"}, {"threads", "4"}, {"new", "y"}};
  EXPECT_THAT(differences(then, now), ElementsAre("it was saved with gone x, this run has none",
                                                  "it was saved with new unknown, this run has y",
                                                  "it was saved with threads 2, this run has 4"));
  EXPECT_THAT(differences(then, then), IsEmpty());
}

TEST(EnvironmentRecord, GoesThroughAMetaGraph) {
  proto::MetaGraphDef meta_graph;
  EXPECT_EQ(recorded_environment(meta_graph), std::nullopt);
  const Environment environment{{"BLAS", "OpenBLAS 0.3.21: fast"}, {"threads", "2"}};
  record_environment(environment, &meta_graph);
  EXPECT_EQ(meta_graph.meta_info_def().any_info().type_url(), "type.googleapis.com/google.protobuf.StringValue");
  EXPECT_EQ(recorded_environment(meta_graph), environment);
}

TEST(EnvironmentRecord, HasTheProgramsOptions) {
  record_option("batch_size", "32");
  EXPECT_EQ(environment_of("1234").at("option batch_size"), "32");
  EXPECT_EQ(environment_of("1234").at("graph"), "1234");
}

TEST(EnvironmentRecord, AnOptionThatIsNoLineIsRefused) {
  EXPECT_THROW(record_option("layers", "64\n32"), InvalidArgumentError);
  EXPECT_THROW(record_option("layers\n", "64"), InvalidArgumentError);
  EXPECT_THROW(record_option("model: layers", "64"), InvalidArgumentError);
  record_option("data:", "a: b");
  proto::MetaGraphDef meta_graph;
  record_environment(environment_of("1234"), &meta_graph);
  EXPECT_EQ(recorded_environment(meta_graph), environment_of("1234"));
}

class GraphFingerprint : public ::testing::Test {
 protected:
  static std::string of(double rate, uint64_t seed, const std::string& file) {
    Graph graph;
    graph.set_seed(seed);
    const Scope root(graph);
    ops::constant(root, Tensor::scalar(file), "file");
    ops::assign_add(root, ops::variable(root, "w", Tensor::scalar(1.0)), ops::constant(root, rate));
    return graph_fingerprint(graph);
  }
};

TEST_F(GraphFingerprint, IsThatOfWhatIsComputed) {
  EXPECT_EQ(of(0.1, 1, "a.txt"), of(0.1, 1, "b.txt"));
  EXPECT_NE(of(0.1, 1, "a.txt"), of(0.2, 1, "a.txt"));
  EXPECT_NE(of(0.1, 1, "a.txt"), of(0.1, 2, "a.txt"));
  EXPECT_EQ(of(0.1, 1, "a.txt").size(), 16u);
}

TEST_F(GraphFingerprint, SaversAreNoPartOf) {
  Graph graph;
  const Scope root(graph);
  ops::variable(root, "w", Tensor::scalar(1.0));
  const std::string before = graph_fingerprint(graph);
  const Saver saver({.graph = &graph});
  EXPECT_EQ(graph_fingerprint(graph), before);
  ops::variable(root, "v", Tensor::scalar(1.0));
  EXPECT_NE(graph_fingerprint(graph), before);
}

class EnvironmentOfCheckpoints : public SaverFixture {
 protected:
  // What is logged when a checkpoint that was made with 2 threads is restored by `saver` with 4.
  std::string warning_of(Saver& saver, Session& in, const std::string& prefix) {
    const Facts facts(Environment{{"threads", "4"}});
    return warning_of_restore(saver, in, prefix);
  }
  static std::string warning_of_restore(Saver& saver, Session& in, const std::string& prefix) {
    const LogRecorder log;
    saver.restore(in, prefix);
    return log.text(LogLevel::kWarning);
  }
  // What is logged when a checkpoint that was made under `then` is restored under `now`.
  std::string warning_of(const Environment& then, const Environment& now) {
    Saver saver(options);
    {
      const Facts facts(then);
      saver.save(*session, path);
    }
    const Facts facts(now);
    return warning_of_restore(saver, *session, path);
  }
  std::string save(Saver& saver) {
    const Facts facts(Environment{{"threads", "2"}});
    return saver.save(*session, path);
  }

  const Output training = ops::assign_add(root, step, ops::constant(root, int64_t{1}), "train");
};

TEST_F(EnvironmentOfCheckpoints, ADifferenceIsWarnedOfOnceAndRestored) {
  const std::string text = warning_of(Environment{{"threads", "2"}}, Environment{{"threads", "4"}});
  EXPECT_THAT(text, HasSubstr(path + " is restored, but"));
  EXPECT_THAT(text, HasSubstr("it was saved with threads 2, this run has 4"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  set(a, 9);
  Saver(options).restore(*session, path);
  EXPECT_EQ(get(a), 1);
}

TEST_F(EnvironmentOfCheckpoints, WhatEarlierVersionsRecordedOtherwiseIsNotWarnedOf) {
  EXPECT_EQ(warning_of(Environment{{"threads", "2"}, {"threads between operations", "1"}},
                       Environment{{"threads", "2"}, {"compiler", "GCC 12.2.0"}}),
            "");
}

TEST_F(EnvironmentOfCheckpoints, InstructionsThatThisRunCouldUseAreTold) {
  EXPECT_THAT(warning_of(Environment{{"vector instructions", "AVX2"}}, Environment{{"vector instructions", "AVX512"}}),
              AllOf(HasSubstr("AVX2, this run has AVX512"), HasSubstr("ATEN_CPU_CAPABILITY=avx2")));
}

TEST_F(EnvironmentOfCheckpoints, AnotherLibtorchIsToldWithWhatCanBeDone) {
  const std::string text = warning_of(Environment{{"BLAS", "OpenBLAS 0.3.21 Haswell"}, {"threads", "1"}},
                                      Environment{{"BLAS", "MKL 2024.2"}, {"threads", "8"}});
  EXPECT_THAT(text, AllOf(HasSubstr("BLAS OpenBLAS 0.3.21 Haswell, this run has MKL 2024.2"),
                          HasSubstr("set_intra_op_threads(1) gives this run as many"),
                          HasSubstr("a libtorch that calls OpenBLAS gives this run the same BLAS")));
  EXPECT_THAT(warning_of(Environment{{"BLAS", "OpenBLAS 0.3.21 Haswell"}, {"threads", "1"}},
                         Environment{{"BLAS", "OpenBLAS 0.3.29 Haswell"}, {"threads", "1"}}),
              AllOf(Not(HasSubstr("a libtorch that calls")), Not(HasSubstr("set_intra_op_threads"))));
}

TEST_F(EnvironmentOfCheckpoints, AnotherGraphIsNamedByWhatIsNotTheSame) {
  Saver saver(options);
  const std::string saved = save(saver);
  Graph other;
  const Scope scope(other);
  ops::variable(scope, "b", Tensor::scalar(2.0f));
  ops::variable(scope, "a", Tensor::scalar(7.0f));  // another initial value
  const Variable other_step = ops::create_global_step(scope);
  ops::assign_add(scope, other_step, ops::constant(scope, int64_t{1}), "advance");
  Saver reader({.graph = &other, .files = &files});
  const auto fresh = make_scripted_session(other);
  EXPECT_THAT(warning_of(reader, *fresh, saved),
              AllOf(HasSubstr("it was saved with another graph; removed operations: init, train; new operations: "
                              "advance; operations with changed values, types or inputs: a/"),
                    HasSubstr("threads 2, this run has 4")));
}

TEST_F(EnvironmentOfCheckpoints, ASummaryMoreOrLessTrainsTheSame) {
  Saver saver(options);
  const std::string saved = save(saver);
  const Output copied = ops::identity(root, a);
  summary::scalar(root, "copied", copied);
  Saver with_summary({.graph = &graph, .name = "again", .files = &files});
  EXPECT_THAT(warning_of(with_summary, *session, saved), Not(HasSubstr("graph")));
  const std::string later = with_summary.save(*session, path + "-later");
  ops::assign_add(root, b, copied);
  Saver with_another_step({.graph = &graph, .name = "once_more", .files = &files});
  EXPECT_THAT(warning_of(with_another_step, *session, later), HasSubstr("it was saved with another graph"));
}

TEST_F(EnvironmentOfCheckpoints, AnotherSeedIsCalledThat) {
  Saver saver(options);
  const std::string saved = save(saver);
  graph.set_seed(17);
  Saver reseeded({.graph = &graph, .name = "again", .files = &files});
  EXPECT_THAT(warning_of(reseeded, *session, saved), HasSubstr("it was saved with another graph seed"));
}

TEST_F(EnvironmentOfCheckpoints, APartOfATrainingIsNoneToGoOnWith) {
  Saver saver(options);
  const std::string saved = save(saver);
  Saver part({.graph = &graph, .var_list = std::vector<SaveEntry>{a, b}, .name = "pretrained", .files = &files});
  EXPECT_EQ(warning_of(part, *session, saved), "") << "the step that the training advances is not restored";
  EXPECT_NE(warning_of(saver, *session, saved), "");
}

TEST_F(EnvironmentOfCheckpoints, AnEvaluationIsNoneToGoOnWith) {
  Saver saver(options);
  const std::string saved = save(saver);
  Graph evaluation;
  const Scope scope(evaluation);
  const Variable weights = ops::variable(scope, "a", Tensor::scalar(0.0f));
  ops::variable(scope, "b", Tensor::scalar(0.0f));
  ops::create_global_step(scope);
  const Variable seen = ops::local_variable(scope, "seen", ops::constant(scope, 0.0f));
  ops::assign_add(scope, seen, weights);
  Saver reader({.graph = &evaluation, .files = &files});
  const auto fresh = make_scripted_session(evaluation);
  EXPECT_EQ(warning_of(reader, *fresh, saved), "");
}

TEST_F(EnvironmentOfCheckpoints, TheSameIsNoWarning) {
  Saver saver(options);
  saver.save(*session, path);
  const LogRecorder log;
  saver.restore(*session, path);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

// 16 million nodes without contents, 3.5 GB in memory.
TEST_F(EnvironmentOfCheckpoints, TheGraphBesideACheckpointTakesNoMemory) {
  Saver saver(options);
  {
    const Facts facts(Environment{{"threads", "2"}});
    saver.save(*session, path);
  }
  std::string nodes("\x0a\x00", 2);
  while (nodes.size() < (1u << 25)) nodes += nodes;
  const std::string graph_of_32_mebibytes("\x12\x80\x80\x80\x10", 5);
  const std::string meta = read_file(files, meta_graph_filename(path));
  write_file_atomically(files, meta_graph_filename(path), graph_of_32_mebibytes + nodes + meta);
  const Facts facts(Environment{{"threads", "4"}});
  const LogRecorder log;
  saver.restore(*session, path);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("threads 2, this run has 4"));
  const auto growth = testing::memory_growth([&] { saver.restore(*session, path); });
  if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
  EXPECT_LT(*growth, 16u << 20);
}

TEST_F(EnvironmentOfCheckpoints, WithoutOrWithADamagedMetaGraphThereIsNoWarning) {
  Saver saver(options);
  const Facts facts(Environment{{"threads", "2"}});
  saver.save(*session, path);
  const Facts others(Environment{{"threads", "4"}});
  write_file_atomically(files, meta_graph_filename(path), "\xff\xff\xff");
  const LogRecorder log;
  saver.restore(*session, path);
  files.remove(meta_graph_filename(path));
  saver.restore(*session, path);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

}  // namespace
}  // namespace longhaul
