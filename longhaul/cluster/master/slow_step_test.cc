#include "longhaul/cluster/master/slow_step.h"

#include "longhaul/cluster/master/cluster_session_fixture.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

proto::LookAtStepReply at_matmul() {
  proto::LookAtStepReply place;
  place.set_place(proto::PLACE_RUNS);
  place.set_operation("dense/MatMul");
  place.set_type("aten::mm");
  place.set_device("/device:CPU:0");
  place.set_secs(14);
  place.set_operation_secs(12);
  return place;
}

TEST(PlaceText, NamesOperationDeviceAndTime) {
  EXPECT_EQ(place_text(kPs, at_matmul()), "has not got its part");
  proto::LookAtStepReply place = at_matmul();
  place.set_state(proto::STEP_RUNNING);
  EXPECT_EQ(place_text(kPs, place),
            "runs dense/MatMul (aten::mm) on " + kPs + "/device:CPU:0, for 12 s at least; its part came 14 s ago");
  place.set_peer(kPs1);
  EXPECT_THAT(place_text(kPs, place), HasSubstr("waits for a value from task " + kPs1 + ": dense/MatMul"));
  place.set_is_over(true);
  EXPECT_EQ(place_text(kPs, place), "has done its part");
}

TEST(PlaceText, OfEachPhase) {
  proto::LookAtStepReply place;
  place.set_state(proto::STEP_PREPARED);
  const auto text = [&](proto::StepPlace phase) {
    place.set_place(phase);
    return place_text(kPs, place);
  };
  EXPECT_THAT(text(proto::PLACE_BEGINS), HasSubstr("has begun no operation; its part came 0 s ago"));
  EXPECT_THAT(text(proto::PLACE_SENDS), HasSubstr("waits until other tasks have what it has sent"));
  EXPECT_THAT(text(proto::PLACE_VERDICT), HasSubstr("is prepared, and waits for the other tasks"));
  EXPECT_THAT(text(proto::PLACE_GATE), HasSubstr("waits at the gate"));
  EXPECT_THAT(text(static_cast<proto::StepPlace>(77)), HasSubstr("has begun no operation"));
}

TEST(PlaceText, OfHostileAnswersIsShortAndOnOneLine) {
  proto::LookAtStepReply place = at_matmul();
  place.set_state(proto::STEP_RUNNING);
  place.set_operation(std::string(100000, 'x') + "\n");
  place.set_type("a\nb\x01");
  place.set_device(std::string(1000, '\n'));
  place.set_peer(std::string(5000, '\xff'));
  const std::string text = place_text(kPs, place);
  EXPECT_LT(text.size(), 5000u);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

class SlowStepTest : public ClusterSessionTest {
 protected:
  SlowStepTest() {
    start_all();
    session_ = session();
    session_->run(train_);
  }
  std::vector<std::string> told() const {
    std::vector<std::string> lines;
    for (const std::string& text : logged_) {
      if (text.find("a step has taken") != std::string::npos) lines.push_back(text);
    }
    return lines;
  }
  std::string timed_out(double secs, const Fetch& fetch) {
    return error_of<DeadlineExceededError>([&] { session_->run(fetch, {}, {.timeout = Seconds{secs}}); });
  }

  std::unique_ptr<ClusterSession> session_;
};

TEST_F(SlowStepTest, AStepThatDoesNotTakeLongAsksNobody) {
  for (int i = 0; i < 10; ++i) session_->run(train_, {}, {.timeout = Seconds{3}});
  EXPECT_EQ(toy(kPs).looks() + toy(kPs1).looks(), 0u);
}

TEST_F(SlowStepTest, TheErrorOfATimeoutNamesTaskOperationDeviceAndTime) {
  toy(kPs1).hangs = true;
  toy(kPs1).place = at_matmul();
  toy(kPs).place.set_place(proto::PLACE_VERDICT);
  EXPECT_THAT(timed_out(3, train_), AllOf(HasSubstr("task " + kPs1), HasSubstr("has not answered RunPart for 3 s"),
                                          HasSubstr("task " + kPs + " is prepared, and waits for the other tasks"),
                                          HasSubstr("task " + kPs1 + " runs dense/MatMul (aten::mm) on " + kPs1 +
                                                    "/device:CPU:0, for 12 s at least"),
                                          HasSubstr("The step was not committed")));
  EXPECT_EQ(toy(kPs1).looks(), 2u);
  session_->close();
  expect_nothing_left();
}

TEST_F(SlowStepTest, ATaskThatDoesNotAnswerIsNamed) {
  toy(kPs).hangs = toy(kPs1).hangs = true;
  toy(kPs1).is_silent = true;
  const Seconds began = now();
  EXPECT_THAT(timed_out(4, train_), AllOf(HasSubstr("task " + kPs1 + " has not said for 2 s where it is"),
                                          HasSubstr("task " + kPs + " has begun no operation")));
  EXPECT_NEAR((now() - began).count(), 4, 0.01) << "nobody waits for the answer";
  EXPECT_EQ(toy(kPs1).looks(), 1u) << "asked again only when it has answered";
  session_->close();
  expect_nothing_left();
}

TEST_F(SlowStepTest, ATaskThatFallsSilentIsNamedWithWhatItSaidLast) {
  toy(kPs).hangs = toy(kPs1).hangs = true;
  toy(kPs1).place = at_matmul();
  in(Seconds{2.5}, [this] { toy(kPs1).is_silent = true; });
  EXPECT_THAT(timed_out(4, train_), HasSubstr("where it is; before that it said that it runs dense/MatMul"));
}

TEST_F(SlowStepTest, ATaskThatRefusesIsNamed) {
  toy(kPs).hangs = true;
  toy(kPs).transport().serve(methods::kLookAtStep, [](const std::shared_ptr<IncomingCall>& call) {
    call->fail(std::make_exception_ptr(UnimplementedError("an older one")));
  });
  EXPECT_THAT(timed_out(3, add_v_), AllOf(HasSubstr("does not say where it is"), HasSubstr("an older one")));
}

TEST_F(SlowStepTest, AStepWithoutADeadlineIsToldOfAtGrowingDistances) {
  toy(kPs).hangs = true;
  toy(kPs).place = at_matmul();
  in(Seconds{300}, [this] { network_.kill(kPs); });
  EXPECT_THROW(session_->run(add_v_), AbortedError);
  EXPECT_THAT(told(), ElementsAre(HasSubstr("62 s so far"), HasSubstr("122 s so far"), HasSubstr("242 s so far")));
  EXPECT_THAT(told(), Each(HasSubstr("task " + kPs + " runs dense/MatMul (aten::mm)")));
}

TEST_F(SlowStepTest, AStepOfHalfAMinuteIsNotToldOf) {
  toy(kPs).hangs = true;
  EXPECT_THROW(session_->run(add_v_, {}, {.timeout = Seconds{50}}), DeadlineExceededError);
  EXPECT_TRUE(told().empty());
  EXPECT_EQ(toy(kPs).looks(), 3u);
}

}  // namespace
}  // namespace longhaul
