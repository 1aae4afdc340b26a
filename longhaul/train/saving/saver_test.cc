#include "longhaul/train/saving/saver.h"

#include <atomic>
#include <thread>

#include "longhaul/base/deadline.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/train/interrupted_clock_fixture.h"
#include "longhaul/train/saved_state/saved_size.h"
#include "longhaul/train/saving/saver_fixture.h"
#include "longhaul/train/saving/startup_report.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using SaverTest = SaverFixture;

TEST_F(SaverTest, WhatIsSavedIsRestored) {  // SA-20, SA-40
  Saver saver(options);
  EXPECT_EQ(saver.save(*session, path), path);
  for (const char* suffix : {".index", ".data-00000-of-00001", ".meta"})
    EXPECT_TRUE(files.exists(path + suffix)) << suffix;
  EXPECT_EQ(state().model_checkpoint_path, path);
  set(a, 7);
  const auto fresh = make_scripted_session(graph);
  saver.restore(*fresh, path);
  saver.restore(*session, path);
  EXPECT_EQ(fresh->run(b).item<float>(), 2);
  EXPECT_EQ(get(a), 1);
}

TEST_F(SaverTest, APathMayHaveTheCharactersOfPatterns) {  // unlike SA-29
  const std::string odd = directory.file("run[1]?*");
  Saver saver(options);
  const std::string prefix = saver.save(*session, odd + "/model[a-z]*", 1);
  EXPECT_EQ(prefix, odd + "/model[a-z]*-1");
  EXPECT_TRUE(exists(prefix));
  EXPECT_EQ(latest_checkpoint(files, odd), prefix);
  set(a, 9);
  saver.restore(*session, prefix);
  EXPECT_EQ(get(a), 1);
}

TEST_F(SaverTest, TellsWhatIsListedToWhoListens) {
  Saver saver(options);
  std::vector<std::string> told;
  auto listening = saver.on_saved([&](const std::string& prefix) { told.push_back(prefix); });
  saver.save(*session, path, 1);
  saver.save(*session, path, 2, {.write_state = false});
  saver.save(*session, path, step);
  saver.save(*session, path, step, {.skip_if_saved = true});
  listening.reset();
  saver.save(*session, path, 3);
  EXPECT_THAT(told, ElementsAre(path + "-1", path + "-0", path + "-0"));
}

TEST_F(SaverTest, IsIdleOnceItsSavesHaveEnded) {
  Saver saver(options);
  bool is_idle_meanwhile = true;
  saver.save(*session, path, 1,
             {.after_snapshot = [&](auto) { is_idle_meanwhile = saver.wait_until_idle(Seconds{0}); }});
  EXPECT_FALSE(is_idle_meanwhile);
  EXPECT_TRUE(saver.wait_until_idle(Seconds{0}));
}

TEST_F(SaverTest, ASaveOnAnotherThreadIsWaitedFor) {
  Saver saver(options);
  std::atomic<bool> is_saving{false}, may_end{false};
  std::thread other([&] {
    saver.save(*session, path, 1, {.after_snapshot = [&](auto) {
      is_saving = true;
      while (!may_end) std::this_thread::yield();
    }});
  });
  while (!is_saving) std::this_thread::yield();
  EXPECT_FALSE(saver.wait_until_idle(Seconds{0}));
  may_end = true;
  EXPECT_TRUE(saver.wait_until_idle(Seconds{1})) << "time stands still here";
  EXPECT_TRUE(exists(path + "-1"));
  other.join();
}

TEST_F(SaverTest, ASaveOnAnotherThreadIsNotWaitedForBeyondADeadlineThatIsSetMeanwhile) {
  InterruptedClock interrupted;
  Deadline deadline(interrupted);
  interrupted.event = [&] { deadline.bring_forward(Seconds{0}); };
  options.clock = &interrupted;
  Saver saver(options);
  std::atomic<bool> is_saving{false}, may_end{false};
  std::thread other([&] {
    saver.save(*session, path, 1, {.after_snapshot = [&](auto) {
      is_saving = true;
      while (!may_end) std::this_thread::yield();
    }});
  });
  while (!is_saving) std::this_thread::yield();
  const Seconds start = interrupted.now();
  EXPECT_FALSE(saver.wait_until_idle(Seconds{60}, &deadline));
  EXPECT_EQ(interrupted.now(), start);
  may_end = true;
  other.join();
  interrupted.join();
}

TEST_F(SaverTest, ItsNodesHaveTheNamesOfTheOriginal) {  // SA-6, SA-7, SA-9
  const int before = graph.num_operations();
  const Saver saver(options);
  for (const char* name : {"save/filename/input", "save/filename", "save/Const", "save/SaveV2/tensor_names",
                           "save/SaveV2/shape_and_slices", "save/SaveV2", "save/control_dependency",
                           "save/RestoreV2/tensor_names", "save/RestoreV2/shape_and_slices", "save/RestoreV2",
                           "save/Assign", "save/Assign_1", "save/Assign_2", "save/restore_all"}) {
    EXPECT_TRUE(graph.find_operation(name)) << name;
  }
  for (const Operation& op : graph.operations()) {
    EXPECT_TRUE(op.id() < before || op.name().starts_with("save/")) << op.name();
  }
  const auto names = graph.operation("save/SaveV2/tensor_names").attr<Tensor>("value");
  EXPECT_THAT(names.flat<std::string>(), ElementsAre("a", "b", "global_step"));
}

TEST_F(SaverTest, BytesLieInTheOrderOfTheNames) {  // SA-9
  Saver(options).save(*session, path);
  EXPECT_EQ(read_file(files, path + ".data-00000-of-00001"), std::string("\0\0\x80\x3f\0\0\0\x40\0\0\0\0\0\0\0\0", 16));
}

TEST_F(SaverTest, TheSaverDefNamesThem) {  // SA-10
  options.max_to_keep = 7;
  const proto::SaverDef def = Saver(options).as_saver_def();
  EXPECT_EQ(def.filename_tensor_name(), "save/Const:0");
  EXPECT_EQ(def.save_tensor_name(), "save/control_dependency:0");
  EXPECT_EQ(def.restore_op_name(), "save/restore_all");
  EXPECT_EQ(def.max_to_keep(), 7);
  EXPECT_EQ(def.version(), proto::SaverDef::V2);
}

TEST_F(SaverTest, ASaverIsMadeFromItsDef) {
  const proto::SaverDef def = Saver(options).to_proto();
  Saver again(graph, def, options);
  again.save(*session, path);
  set(b, 9);
  again.restore(*session, path);
  EXPECT_EQ(get(b), 2);
}

TEST_F(SaverTest, TheFilenameIsTheDefaultOfItsTensor) {  // SA-6
  const auto filename = [&](const Saver& saver) {
    return session->run(saver.to_proto().filename_tensor_name()).item<std::string>();
  };
  EXPECT_EQ(filename(Saver(options)), "model");
  EXPECT_EQ(session->run("save/Const:0").item<std::string>(), "model");
  options.filename = "elsewhere";
  EXPECT_EQ(filename(Saver(options)), "elsewhere");
}

TEST_F(SaverTest, TheStepIsANumberATensorOrAName) {  // SA-21
  Saver saver(options);
  EXPECT_EQ(saver.save(*session, path, 5), path + "-5");
  EXPECT_EQ(saver.save(*session, path, step), path + "-0");
  EXPECT_EQ(saver.save(*session, path, "global_step:0"), path + "-0");
  options.pad_step_number = true;
  EXPECT_EQ(Saver(options).save(*session, path, 5), path + "-00000005");
}

TEST_F(SaverTest, VariablesAndStepAreReadInOneSnapshot) {
  Saver saver(options);
  const int before = session->runs();
  saver.save(*session, path, step);
  EXPECT_EQ(session->runs(), before + 1);
  EXPECT_EQ(session->snapshot_runs(), 1);
}

TEST_F(SaverTest, AStepIsSavedOnceOnDemand) {
  Saver saver(options);
  saver.save(*session, path, step);
  const size_t written = files.operations().size();
  EXPECT_EQ(saver.save(*session, path, step, {.skip_if_saved = true}), path + "-0");
  EXPECT_EQ(files.operations().size(), written);
}

TEST_F(SaverTest, WhatIsNewsOfASavedStepIsNotSkipped) {
  options.best.top_k = 1;
  Saver saver(options);
  saver.save(*session, path, step, {.write_state = false});
  saver.save(*session, path, step, {.skip_if_saved = true});
  EXPECT_EQ(state().model_checkpoint_path, path + "-0");
  saver.save(*session, path, step, {.metric = 0.93, .skip_if_saved = true});
  EXPECT_THAT(saver.best_checkpoints(), ElementsAre(path + "-0"));
}

TEST_F(SaverTest, EverySaveIsWritten) {  // SA-27
  Saver saver(options);
  for (const StepSource& any : {StepSource(), StepSource(3), StepSource(step)}) {
    set(a, 4);
    const std::string prefix = saver.save(*session, path, any);
    set(a, 5);
    EXPECT_EQ(saver.save(*session, path, any), prefix);
    set(a, 6);
    saver.restore(*session, prefix);
    EXPECT_EQ(get(a), 5) << prefix;
  }
}

TEST_F(SaverTest, LargeAndSmallTensorsComeBackExactly) {  // SA-28
  const auto counting = [](const Shape& shape, int from) {
    Tensor tensor(kFloat, shape);
    float next = static_cast<float>(from);
    for (float& value : tensor.mutable_flat<float>()) value = next++;
    return tensor;
  };
  std::vector<std::pair<Variable, Tensor>> saved;
  for (int i = 0; i < 8; ++i) {
    const Shape shape = i < 3 ? Shape{3200, 1000} : Shape{i};
    const Output initial = ops::placeholder(root, kFloat, shape);
    const Variable variable = ops::variable(root, "v" + std::to_string(i), initial);
    saved.emplace_back(variable, counting(shape, i));
    session->run(variable.initializer(), {{initial, saved.back().second}});
  }
  options.max_to_keep = 1;
  Saver saver(options);
  saver.save(*session, path, 1);
  const std::string prefix = saver.save(*session, path, 2);
  EXPECT_FALSE(exists(path + "-1"));
  const auto fresh = make_scripted_session(graph);
  saver.restore(*fresh, prefix);
  for (const auto& [variable, value] : saved) EXPECT_TRUE(identical(fresh->run(variable), value)) << variable.name();
}

TEST_F(SaverTest, TheIndexComesAfterDataAndMetaAndBeforeTheState) {  // unlike SA-25
  Saver saver(options);
  saver.save(*session, path);
  std::vector<std::string> renames;
  for (const std::string& operation : files.operations()) {
    if (operation.starts_with("rename")) renames.push_back(operation.substr(operation.rfind(' ') + 1));
  }
  EXPECT_THAT(renames, ElementsAre("model.data-00000-of-00001", "model.meta", "model.index", "checkpoint"));
}

TEST_F(SaverTest, AFailureAtAnyOperationLeavesTheCheckpointBeforeOrTheNewOne) {
  Saver first(options);
  first.save(*session, path, 1);
  const size_t before = files.operations().size();
  Saver(options).save(*session, path, 2);
  const int count = static_cast<int>(files.operations().size() - before);
  for (int n = 0; n < count; ++n) {
    remove_checkpoint(files, path + "-2");
    files.fail_operation(n);
    error_of([&] { Saver(options).save(*session, path, 2); });
    files.heal();
    const std::string latest = exists(path + "-2") ? path + "-2" : path + "-1";
    EXPECT_THAT(BundleReader(files, latest).verify(), IsEmpty()) << "operation " << n;
    EXPECT_TRUE(exists(path + "-2") || !files.exists(path + "-2.meta")) << "operation " << n;
  }
}

TEST_F(SaverTest, AMissingParentIsMade) {  // SA-22
  Saver saver(options);
  const std::string deep = directory.file("not/there/model");
  EXPECT_EQ(saver.save(*session, "file://" + deep), deep);
  EXPECT_TRUE(exists(deep));
  EXPECT_THAT(error_of([&] { saver.save(*session, deep + ".index/model"); }),
              HasSubstr("Parent directory of " + deep + ".index/model doesn't exist, can't save."));
}

TEST_F(SaverTest, TheStateFilesNameIsTaken) {  // SA-23, SA-24
  Saver saver(options);
  EXPECT_THAT(error_of([&] { saver.save(*session, directory.file("checkpoint")); }), HasSubstr("collides with"));
  EXPECT_EQ(saver.save(*session, directory.file("checkpoint"), 1), directory.file("checkpoint-1"));
  EXPECT_THAT(error_of([&] { saver.save(*session, path, 1, {.latest_filename = "x/y"}); }),
              HasSubstr("must not contain path components"));
}

TEST_F(SaverTest, MetaGraphAndStateCanBeLeftOut) {  // SA-26
  Saver saver(options);
  saver.save(*session, path, 1, {.write_meta_graph = false, .write_state = false});
  EXPECT_FALSE(files.exists(path + "-1.meta"));
  EXPECT_FALSE(files.exists(directory.file("checkpoint")));
  EXPECT_THAT(saver.last_checkpoints(), IsEmpty());
  saver.save(*session, path, 2, {.meta_graph_suffix = "graph"});
  EXPECT_TRUE(files.exists(path + "-2.graph"));
}

TEST_F(SaverTest, TheMetaGraphHasGraphAndSaver) {  // SA-90
  Saver saver(options);
  saver.save(*session, path);
  proto::MetaGraphDef meta;
  ASSERT_TRUE(meta.ParseFromString(read_file(files, path + ".meta")));
  meta.mutable_meta_info_def()->clear_any_info();  // what it was made with: environment_record.h
  EXPECT_EQ(proto::serialize(meta), proto::serialize(saver.export_meta_graph()));
  EXPECT_EQ(meta.saver_def().restore_op_name(), "save/restore_all");
  EXPECT_EQ(meta.graph_def().node_size(), graph.num_operations());
}

TEST_F(SaverTest, NamesMustBeUnique) {  // SA-2, SA-3
  options.var_list = {{a, a}};
  EXPECT_THAT(error_of([&] { Saver{options}; }), HasSubstr("same name: a"));
  options.var_list = {{{"x", a}, {"y", a}}};
  EXPECT_THAT(error_of([&] { Saver{options}; }), HasSubstr("The same saveable will be restored with two names: a"));
}

TEST_F(SaverTest, NothingToSaveIsAnErrorUnlessAllowed) {  // SA-5
  options.var_list.emplace();
  EXPECT_THAT(error_of([&] { Saver{options}; }), HasSubstr("No variables to save"));
  options.allow_empty = true;
  Saver saver(options);
  EXPECT_EQ(saver.save(*session, path), "");
  EXPECT_TRUE(files.exists(path + ".meta"));
  EXPECT_FALSE(files.exists(directory.file("checkpoint")));
  saver.restore(*session, path);
}

TEST_F(SaverTest, ADeferredBuildTakesWhatTheGraphHasThen) {  // SA-4
  options.defer_build = true;
  Saver saver(options);
  EXPECT_THAT(error_of([&] { saver.save(*session, path); }), HasSubstr("build"));
  const Variable late = ops::variable(root, "late", Tensor::scalar(4.0f));
  saver.build();
  session->run(late.initializer());
  saver.save(*session, path);
  EXPECT_TRUE(BundleReader(files, path).has("late"));
  options.var_list = {{a}};
  EXPECT_THAT(error_of([&] { Saver{options}; }), HasSubstr("defer_build"));
}

TEST_F(SaverTest, VariablesCanHaveOtherNamesInTheFile) {  // SA-46, SA-40
  options.var_list = {{{"prefix/a", a}}};
  Saver saver(options);
  saver.save(*session, path);
  EXPECT_THAT(BundleReader(files, path).keys(), ElementsAre("prefix/a"));
  options.var_list = {{{"prefix/a", b}}};
  Saver other(options);
  const auto fresh = make_scripted_session(graph);
  other.restore(*fresh, path);
  EXPECT_EQ(fresh->run(b).item<float>(), 1);
  EXPECT_THROW(fresh->run(a), FailedPreconditionError);
}

TEST_F(SaverTest, AllThatDoesNotFitIsReportedAtOnce) {  // SA-42, SA-43, SA-44, SA-45
  Saver(options).save(*session, path);
  Graph other;
  const Scope scope(other);
  ops::variable(scope, "a", Tensor::of<float>({1, 2}));
  ops::variable(scope, "b", Tensor::scalar<int32_t>(1));
  ops::variable(scope, "c", Tensor::scalar(1.0f));
  ops::variable(scope, "d", Tensor::scalar(1.0f));
  Saver saver({.graph = &other});
  const auto fresh = make_scripted_session(other);
  EXPECT_THAT(error_of([&] { saver.restore(*fresh, path); }),
              AllOf(HasSubstr("a mismatch between the current graph and the graph"),
                    HasSubstr("Key c not found in checkpoint"), HasSubstr("Key d not found in checkpoint"),
                    HasSubstr("Assign requires shapes of both tensors to match."), HasSubstr("original dtype")));
  EXPECT_THROW(saver.restore(*fresh, path), NotFoundError);
  EXPECT_THAT(error_of([&] { saver.restore(*fresh, path); }),
              AllOf(HasSubstr("The models differ, or their names do: the checkpoint has 2 of the graph's 4 names"),
                    HasSubstr("\n  Key c not found in checkpoint\n  Key d not found"),
                    HasSubstr("\nOnly the checkpoint has:\n  global_step\nRestore it into")));
  EXPECT_EQ(fresh->runs(), 0);
  EXPECT_THROW(
      Saver({.var_list = {{Variable(ops::global_variables(other)[0])}}, .name = "a_only"}).restore(*fresh, path),
      InvalidArgumentError);
}

TEST_F(SaverTest, NamesThatAllLackOnePrefixAreToldSo) {
  options.var_list = {{{"train/a", a}, {"train/b", b}}};
  Saver(options).save(*session, path);
  const auto message = [&](const std::vector<SaveEntry>& wanted) {
    Saver saver({.var_list = wanted, .name = "other"});
    return error_of([&] { saver.restore(*make_scripted_session(graph), path); });
  };
  EXPECT_THAT(
      message({{"a", a}, {"b", b}}),
      HasSubstr("\nAll missing names would match with the prefix train/: is a variable_scope(\"train\") missing?\n"));
  EXPECT_THAT(message({{"a", a}, {"c", b}}), Not(HasSubstr("would match with the prefix")));
  EXPECT_THAT(message({{"rain/a", a}}), Not(HasSubstr("would match with the prefix")));
}

TEST_F(SaverTest, AnotherDtypeIsRefused) {  // SA-43
  Saver(options).save(*session, path);
  Graph other;
  ops::variable(Scope(other), "b", Tensor::scalar<int32_t>(1));
  Saver saver({.graph = &other});
  const auto fresh = make_scripted_session(other);
  EXPECT_THROW(saver.restore(*fresh, path), InvalidArgumentError);
  EXPECT_THAT(error_of([&] { saver.restore(*fresh, path); }),
              HasSubstr("b is int32 in the graph, its original dtype in the checkpoint is float"));
}

TEST_F(SaverTest, AnotherOptimizerIsCalledThat) {
  for (const char* slot : {"a/Adam", "a/Adam_1", "b/Adam", "beta1_power"}) {
    ops::variable(root, slot, Tensor::scalar(0.0f));
  }
  session->run(ops::global_variables_initializer(root));
  Saver(options).save(*session, path);
  Graph other;
  const Scope scope(other);
  for (const char* name : {"a", "b", "a/Momentum", "b/Momentum"}) ops::variable(scope, name, Tensor::scalar(0.0f));
  ops::create_global_step(scope);
  Saver saver({.graph = &other});
  const auto fresh = make_scripted_session(other);
  EXPECT_THAT(error_of([&] { saver.restore(*fresh, path); }),
              AllOf(HasSubstr("The model is the same, but its optimizer (or its averaging) differs: the graph has "
                              "Momentum, the checkpoint has Adam."),
                    HasSubstr("\n  Key a/Momentum not found in checkpoint\n")));
}

TEST_F(SaverTest, AMismatchOfVeryManyNamesIsCutToTwentyOfEither) {
  for (int i = 0; i < 30; ++i) ops::variable(root, "old_" + std::to_string(i), Tensor::scalar(0.0f));
  session->run(ops::global_variables_initializer(root));
  Saver(options).save(*session, path);
  Graph other;
  const Scope scope(other);
  for (int i = 0; i < 30; ++i) ops::variable(scope, "new_" + std::to_string(i), Tensor::scalar(0.0f));
  Saver saver({.graph = &other});
  const auto fresh = make_scripted_session(other);
  const std::string error = error_of([&] { saver.restore(*fresh, path); });
  EXPECT_THAT(error,
              AllOf(HasSubstr("The models differ: the checkpoint has none of the graph's 30 names."),
                    HasSubstr("\n  and 10 more\nOnly the checkpoint has"), HasSubstr("\n  and 13 more\nRestore")));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 44);
}

TEST_F(SaverTest, APathThatIsNoCheckpointIsNamed) {  // SA-41
  Saver saver(options);
  EXPECT_THAT(error_of([&] { saver.restore(*session, path); }),
              HasSubstr("The passed save_path is not a valid checkpoint: " + path));
  EXPECT_THAT(error_of([&] { saver.restore(*session, ""); }), HasSubstr("Can't load save_path when it is None."));
}

TEST_F(SaverTest, RestoringSaysFromWhere) {  // SA-50
  Saver saver(options);
  saver.save(*session, path);
  const LogRecorder log;
  saver.restore(*session, path);
  EXPECT_THAT(log.text(), HasSubstr("Restoring parameters from " + path));
}

TEST_F(SaverTest, ADamagedCheckpointIsDataLoss) {
  Saver saver(options);
  saver.save(*session, path);
  const std::string data = path + ".data-00000-of-00001";
  std::string bytes = read_file(files, data);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  write_file_atomically(files, data, bytes);
  EXPECT_THROW(saver.restore(*session, path), DataLossError);
}

TEST_F(SaverTest, ItKnowsHowMuchItWrites) {
  EXPECT_EQ(Saver(options).bytes(), 4u + 4u + 8u);
}

TEST_F(SaverTest, WhatTheProgramIsGoingToKeepCountsFromTheStart) {
  const auto value = [](std::optional<Shape> expected) {
    return ExternalValue{.shape = Shape::unknown_rank(),
                         .expected = std::move(expected),
                         .read = [] { return Tensor(kFloat, Shape{0}); },
                         .assign = [](const Tensor&) {}};
  };
  ops::external_variable(root, "moment", value(Shape{3, 5}));
  ops::external_variable(root, "unused", value(Shape{0}));
  Saver saver(options);
  EXPECT_EQ(saver.bytes(), 4u + 4u + 8u + 15 * 4u);
  EXPECT_TRUE(saved_size(saver.saved_tensors()).is_all);
  ops::external_variable(root, "of_any_size", value(std::nullopt));
  options.name = "later";
  Saver later(options);
  EXPECT_EQ(later.bytes(), saver.bytes());
  EXPECT_FALSE(saved_size(later.saved_tensors()).is_all);
  const LogRecorder log;
  report_checkpoint_costs(later, directory.path());
  EXPECT_THAT(log.text(), HasSubstr("takes at least 76 bytes"));
}

TEST_F(SaverTest, TheMemoryOfASnapshotIsComparedWithWhatTheProcessMayHave) {
  const Saver saver(options);  // of 16 bytes
  const std::string root = directory.file("of_another_machine");
  files.make_directories(root + "/proc/self");
  files.make_directories(root + "/sys/fs/cgroup/job");
  write_file_atomically(files, root + "/proc/self/cgroup", "0::/job\n");
  const auto warnings_with = [&](const std::string& limit) {
    write_file_atomically(files, root + "/sys/fs/cgroup/job/memory.max", limit);
    const LogRecorder log;
    report_checkpoint_costs(saver, directory.path(), root);
    return log.text(LogLevel::kWarning);
  };
  EXPECT_EQ(warnings_with("max\n"), "");
  EXPECT_EQ(warnings_with("32\n"), "");
  EXPECT_THAT(warnings_with("31\n"), AllOf(HasSubstr("31 bytes of memory"), HasSubstr("need 32 bytes"),
                                           HasSubstr("SessionOptions::snapshot_memory")));
}

TEST_F(SaverTest, TheLastCheckpointIsTheNewestOrNone) {
  Saver saver(options);
  EXPECT_EQ(saver.last_checkpoint(), std::nullopt);
  saver.save(*session, path, 1);
  saver.save(*session, path, 2);
  EXPECT_EQ(saver.last_checkpoint(), path + "-2");
}

TEST_F(SaverTest, APathWithoutANameIsRefused) {
  for (const std::string path : {"", "runs/"}) {
    EXPECT_THAT(refusal_of([&] { Saver(options).save(*session, path); }), HasSubstr("names no checkpoint")) << path;
  }
}

}  // namespace
}  // namespace longhaul
