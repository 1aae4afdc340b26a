#include "longhaul/runtime/state/snapshot_moment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/ops/external_variable.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;

// A program whose value comes later in snapshots, and says what it is asked for.
struct LateValue {
  class Rest : public SnapshotMoment::Rest {
   public:
    explicit Rest(LateValue& value) : value_(value) {}
    ~Rest() override { value_.asked.emplace_back("end"); }
    void close() override {
      if (value_.fails_to_close) throw UnavailableError("it does not close");
      value_.asked.emplace_back("close");
    }
    bool complete() override {
      value_.asked.emplace_back("complete");
      *value_.last.mutable_flat<int64_t>().begin() = value_.number;
      return value_.is_right;
    }

   private:
    LateValue& value_;
  };

  Tensor read() {
    SnapshotMoment* const moment = SnapshotMoment::of_this_thread();
    asked.emplace_back(moment != nullptr ? "read later" : "read");
    if (moment == nullptr) return Tensor::scalar(number);
    if (moment->find(this) == nullptr) moment->add(this, std::make_unique<Rest>(*this));
    last = Tensor::scalar<int64_t>(0);
    return last;
  }

  LateValue() {
    value = ops::external_variable(
        Scope(graph), "value", {.dtype = kInt64, .read = [this] { return read(); }, .assign = [](const Tensor&) {}});
    session.run(value.initializer());
    asked.clear();
  }
  int64_t snapshot() { return session.run(value, {}, {.snapshot = true}).item<int64_t>(); }

  std::vector<std::string> asked;
  int64_t number = 7;
  Tensor last;
  bool is_right = true, fails_to_close = false;
  Graph graph;
  Variable value;
  DirectSession session{graph, SessionOptions{}};
};

TEST(SnapshotMoment, IsCompleteBeforeItsValuesAreUsed) {
  LateValue late;
  EXPECT_EQ(late.snapshot(), 7);
  EXPECT_THAT(late.asked, ElementsAre("read later", "close", "complete", "end"));
}

TEST(SnapshotMoment, IsOnlyForSnapshots) {
  LateValue late;
  EXPECT_EQ(late.session.run(late.value).item<int64_t>(), 7);
  EXPECT_THAT(late.asked, ElementsAre("read"));
}

TEST(SnapshotMoment, IsFollowedByAnotherIfAValueIsWrong) {
  LateValue late;
  late.is_right = false;
  EXPECT_EQ(late.snapshot(), 7);
  EXPECT_THAT(late.asked, ElementsAre("read later", "close", "complete", "read", "end"));
}

TEST(SnapshotMoment, EndsIncompleteIfTheSnapshotFails) {
  LateValue late;
  late.fails_to_close = true;
  EXPECT_THROW(late.snapshot(), UnavailableError);
  EXPECT_THAT(late.asked, ElementsAre("read later", "end"));
  EXPECT_EQ(SnapshotMoment::of_this_thread(), nullptr);
}

}  // namespace
}  // namespace longhaul
