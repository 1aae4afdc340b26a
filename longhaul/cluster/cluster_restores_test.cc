// Restores of a model on several tasks.
#include "longhaul/cluster/cluster_saves_fixture.h"
#include "longhaul/ops/input/lookup_ops.h"
#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/ops/replica_device_setter.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_model(Session& session, const SavedCounting& model, float a) {
  const std::vector<Tensor> values = session.run({model.a, model.b}, {}, {.snapshot = true});
  for (size_t i = 0; i < static_cast<size_t>(values[0].num_elements()); ++i) {
    ASSERT_EQ(values[0].flat<float>()[i], a);
    ASSERT_EQ(values[1].flat<float>()[i], a * (a + 1) / 2);
  }
}

// The chief's own task does not see the directory: nothing is read by way of it.
class OwnReadsTest : public ClusterSavesTest {
 protected:
  OwnReadsTest() : ClusterSavesTest({{kWorker, &own_}}) {}
  static inline OwnDisk own_;
};

TEST_F(OwnReadsTest, EachTaskReadsItsOwn) {  // SA-123
  const auto session = initialised();
  session->run(model_.train);
  Saver saver(options());
  saver.save(*session, path(), 1);
  session->run(model_.train);
  saver.restore(*session, path("model-1"));
  expect_model(*session, model_, 1);
  session->close();
  expect_nothing_left();
}

class UnsharedRestoresTest : public UnsharedSavesTest {};

TEST_F(UnsharedRestoresTest, WhereATaskDoesNotSeeItTheChiefFeedsTheValuesInBoundedRuns) {
  for (const uint64_t most : {uint64_t{1}, uint64_t{4500}, uint64_t{64} << 20}) {
    SCOPED_TRACE(most);
    const auto session = cluster_.session(model_.graph, {}, kWorker, {.in_flight = most});
    session->run(model_.init);
    session->run(model_.train);
    session->run(model_.train);
    Saver saver({.graph = &model_.graph});
    saver.save(*session, path(), 2);
    session->run(model_.init);
    saver.restore(*session, path("model-2"));
    expect_model(*session, model_, 2);
  }
}

TEST_F(UnsharedRestoresTest, AlsoWithASaverThatReadsOneByOne) {
  const auto session = initialised();
  session->run(model_.train);
  SaverOptions one_by_one = options();
  one_by_one.restore_sequentially = true;
  Saver saver(one_by_one);
  saver.save(*session, path(), 1);
  session->run(model_.init);
  saver.restore(*session, path("model-1"));
  expect_model(*session, model_, 1);
}

void flip_a_byte(const std::string& path) {
  std::string bytes = read_file(FileSystem::real(), path);
  bytes.at(bytes.size() / 2) ^= 1;
  write_file_atomically(FileSystem::real(), path, bytes);
}

TEST_F(ClusterSavesTest, DamageIsFoundByTheTaskThatReads) {
  const auto session = initialised();
  Saver saver(options());
  saver.save(*session, path(), 1);
  session->run(model_.train);
  flip_a_byte(path("model-1.data-00001-of-00002"));
  EXPECT_THAT(error_of<DataLossError>([&] { saver.restore(*session, path("model-1")); }),
              HasSubstr("From /job:ps/replica:0/task:1"));
  expect_model(*session, model_, 1);
}

TEST_F(UnsharedRestoresTest, DamageIsFoundByTheChief) {
  const auto session = initialised();
  Saver saver(options());
  saver.save(*session, path(), 1);
  flip_a_byte(path("model-1.data-00001-of-00002"));
  EXPECT_THROW(saver.restore(*session, path("model-1")), DataLossError);
}

// As after the death of ps 0 beside a ps 1 that lives on.
TEST_F(UnsharedRestoresTest, AModelIsNotReadyBeforeTheLastOfSeveralRuns) {
  const Output report =
      ops::report_uninitialized_variables(model_.root, {model_.a.info(), model_.b.info(), model_.step.info()});
  const auto session = initialised();
  Saver(options()).save(*session, path(), 1);
  flip_a_byte(path("model-1.data-00001-of-00002"));
  const auto other = cluster_.session(model_.graph, {.isolate_session_state = true}, kWorker, {.in_flight = 1});
  other->run(model_.b.info().initializer);
  EXPECT_THROW(Saver(options()).restore(*other, path("model-1")), DataLossError);
  const Tensor missing = other->run(report);
  EXPECT_THAT(std::vector<std::string>(missing.flat<std::string>().begin(), missing.flat<std::string>().end()),
              ElementsAre("a", "global_step"));
}

TEST_F(ClusterSavesTest, AModelOfAnotherShapeIsRefusedBeforeAnythingChanges) {
  const auto session = initialised();
  Saver(options()).save(*session, path(), 1);
  SavedCounting larger(1001);
  const auto other = cluster_.session(larger.graph);
  EXPECT_THAT(refusal_of([&] { Saver({.graph = &larger.graph}).restore(*other, path("model-1")); }),
              HasSubstr("a is [1001] in the graph"));
}

// A table of strings on ps 1, and a variable whose slices are on both.
struct ModelOfParts {
  ModelOfParts() {
    const Scope on1 = root.with_device("/job:ps/task:1");
    const MutableHashTable words = ops::mutable_hash_table(on1, kString, kInt64, Tensor::scalar(int64_t{-1}));
    fill = words.insert(on1, ops::constant(on1, Tensor::of<std::string>({"one", "two"})),
                        ops::constant(on1, Tensor::of<int64_t>({1, 2})));
    found = words.lookup(on1, ops::constant(on1, Tensor::of<std::string>({"two", "none"})));
    sliced = ops::partitioned_variable(root.with_device(replica_device_setter({.ps_tasks = 2})), "sliced",
                                       Tensor::of<float>({4, 1}, {1, 2, 3, 4}), {.parts = 2});
    init = ops::global_variables_initializer(root);
  }

  Graph graph;
  Scope root{graph};
  Operation fill, init;
  Output found;
  PartitionedVariable sliced;
};

void save_and_restore_parts(TrainingCluster& cluster, const std::string& path) {
  ModelOfParts model;
  const auto session = cluster.session(model.graph, {.isolate_session_state = true});
  session->run(model.init);
  session->run(model.fill);
  Saver({.graph = &model.graph}).save(*session, path, 1);
  const BundleReader reader(FileSystem::real(), path + "-1");
  EXPECT_EQ(reader.num_shards(), 2);
  EXPECT_TRUE(identical(reader.read("sliced"), Tensor::of<float>({4, 1}, {1, 2, 3, 4})));
  EXPECT_EQ(reader.keys().size(), 3u);  // with the keys and the values of the table
  ModelOfParts empty;
  const auto other = cluster.session(empty.graph, {.isolate_session_state = true});
  Saver({.graph = &empty.graph}).restore(*other, path + "-1");
  const Tensor found = other->run(empty.found);
  EXPECT_THAT(std::vector<int64_t>(found.flat<int64_t>().begin(), found.flat<int64_t>().end()), ElementsAre(2, -1));
  EXPECT_EQ(other->run(empty.sliced[1]).flat<float>()[1], 4.f);
}

TEST_F(ClusterSavesTest, TablesAndSlicesOnSeveralTasks) {
  save_and_restore_parts(cluster_, path());
}

TEST_F(UnsharedRestoresTest, TablesAndSlicesByWayOfTheChief) {
  save_and_restore_parts(cluster_, path());
}

}  // namespace
}  // namespace longhaul
