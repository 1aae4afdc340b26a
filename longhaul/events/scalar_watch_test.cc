#include "longhaul/events/scalar_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

#include "longhaul/events/file_writer.h"
#include "longhaul/events/summary.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ScalarWatchTest : public ::testing::Test {
 protected:
  ScalarWatch note() {
    return [this](std::string_view tag, double value, int64_t step) {
      seen.push_back(fmt::format("{} {} {}", tag, value, step));
    };
  }

  testing::TemporaryDirectory directory;
  FileWriter writer{directory.path()};
  std::vector<std::string> seen;
};

TEST_F(ScalarWatchTest, SeesWhatEveryFormOfAddingBrings) {
  const auto watch = watch_scalars(writer.logdir(), note());
  writer.add_scalar("loss", 0.5f, 1);
  writer.add_summary(scalar_summary("loss", 0.25f), 2);
  writer.add_summary(scalar_summary("loss", 0.125f).SerializeAsString(), 3);
  proto::Event event;
  event.set_step(4);
  *event.mutable_summary() = scalar_summary("loss", 2);
  writer.add_event(event);
  EXPECT_THAT(seen, ElementsAre("loss 0.5 1", "loss 0.25 2", "loss 0.125 3", "loss 2 4"));
}

TEST_F(ScalarWatchTest, SkipsWhatIsNoScalar) {
  const auto watch = watch_scalars(writer.logdir(), note());
  proto::Summary both = text_summary("note", "text");
  both.MergeFrom(scalar_summary("loss", 1));
  writer.add_summary(both.SerializeAsString(), 7);
  EXPECT_THAT(seen, ElementsAre("loss 1 7"));
}

TEST_F(ScalarWatchTest, EndsWithItsObjectAndSeesNoOtherDirectory) {
  auto watch = watch_scalars(writer.logdir(), note());
  const auto other = watch_scalars(writer.logdir() + "/other", [](std::string_view, double, int64_t) { FAIL(); });
  watch.reset();
  writer.add_scalar("loss", 0.5f, 1);
  EXPECT_THAT(seen, IsEmpty());
}

TEST_F(ScalarWatchTest, ASummaryThatCannotBeReadTellsNothing) {
  const auto watch = watch_scalars(writer.logdir(), note());
  const std::string whole = scalar_summary("loss", 1).SerializeAsString();
  for (size_t size = 1; size < whole.size(); ++size) {
    tell_scalar_watches(writer.logdir(), std::string_view(whole).substr(0, size), 1);
  }
  EXPECT_THAT(seen, IsEmpty());
}

}  // namespace
}  // namespace longhaul
