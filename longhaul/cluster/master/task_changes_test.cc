#include "longhaul/cluster/tasks/task_changes.h"

#include "longhaul/cluster/master/cluster_session_fixture.h"

namespace longhaul {
namespace {

class TaskChangesTest : public ClusterSessionTest {
 protected:
  TaskChangesTest() { start_all(); }
  bool wait(TaskChanges& changes, Seconds at_most) { return changes.wait(now() + at_most); }
  // What the tasks say first; true: there was something.
  bool take_first(TaskChanges& changes) {
    bool is_any = false;
    while (wait(changes, Seconds{0.5})) is_any = true;
    return is_any;
  }
};

TEST_F(TaskChangesTest, AChangeEndsTheWaitAtOnce) {
  const auto session = this->session();
  session->run({read_v_, read_w_});
  const auto changes = session->changes();
  EXPECT_TRUE(take_first(*changes));
  const Seconds began = now();
  in(Seconds{5}, [&] { toy(kPs1).change(); });
  const size_t sent = network_.sent().size();
  EXPECT_TRUE(wait(*changes, Seconds{30}));
  EXPECT_NEAR((now() - began).count(), 5, 0.01);
  EXPECT_LE(network_.sent().size(), sent + 4);  // an answer, and the next call; nobody polls
  EXPECT_FALSE(wait(*changes, Seconds{30}));
  EXPECT_NEAR((now() - began).count(), 35, 0.01);
}

TEST_F(TaskChangesTest, AChangeBetweenTwoWaitsIsNotMissed) {
  const auto session = this->session();
  session->run(read_v_);
  const auto changes = session->changes();
  EXPECT_TRUE(take_first(*changes));
  toy(kPs).change();
  pass(Seconds{1});
  EXPECT_TRUE(wait(*changes, Seconds{1}));
  EXPECT_FALSE(wait(*changes, Seconds{1}));
}

TEST_F(TaskChangesTest, TasksThatAreNamedLaterAreWatchedToo) {
  const auto session = this->session();
  const auto changes = session->changes();
  EXPECT_FALSE(wait(*changes, Seconds{1}));
  session->run(read_w_);
  EXPECT_TRUE(take_first(*changes));
  in(Seconds{5}, [&] { toy(kPs1).change(); });
  EXPECT_TRUE(wait(*changes, Seconds{30}));
}

TEST_F(TaskChangesTest, ALostTaskEndsTheWait) {
  const auto session = this->session();
  session->run(read_v_);
  const auto changes = session->changes();
  EXPECT_TRUE(take_first(*changes));
  in(Seconds{5}, [&] { network_.kill(kPs); });
  const Seconds began = now();
  EXPECT_THROW(wait(*changes, Seconds{30}), AbortedError);
  EXPECT_LE((now() - began).count(), 5.2);
}

TEST_F(TaskChangesTest, WhoeverWatchesIsCalledAtAChangeAndAtALoss) {
  const auto session = this->session();
  int calls = 0;
  ModelWatching* const watching = session->capabilities().model_watching;
  ASSERT_NE(watching, nullptr);
  const auto watch = watching->watch_model([&] { ++calls; });
  session->run(read_v_);
  EXPECT_TRUE(watch->take_change());  // a task that was named meanwhile
  pass(Seconds{1});
  EXPECT_TRUE(watch->take_change());  // what it says first
  EXPECT_FALSE(watch->take_change());
  const int before = calls;
  pass(Seconds{30});
  EXPECT_EQ(calls, before);
  toy(kPs).change();
  pass(Seconds{1});
  EXPECT_GT(calls, before);
  EXPECT_TRUE(watch->take_change());
  EXPECT_FALSE(watch->take_change());
  const int before_loss = calls;
  network_.kill(kPs);
  pass(Seconds{1});
  EXPECT_GT(calls, before_loss);
  EXPECT_THROW(watch->take_change(), AbortedError);
}

TEST_F(TaskChangesTest, ABrokenLineIsAskedOverAgain) {
  const auto session = this->session();
  session->run(read_v_);
  const auto changes = session->changes();
  network_.plan({.kind = NetworkFault::Kind::kLose, .message = network_.sent().size() + 1});
  EXPECT_TRUE(wait(*changes, Seconds{30}));
}

}  // namespace
}  // namespace longhaul
