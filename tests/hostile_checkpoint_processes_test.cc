// A training as a process that finds a newest checkpoint which somebody spoilt on purpose: it begins with the one
// before, says why, and takes no memory for what the files merely claim.
#include <fmt/format.h>

#include <fstream>

#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/table/table.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "tests/preemption_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Entry = proto::BundleEntryProto;

constexpr int kMillions = 2'000'000;
constexpr int64_t kMostMoreKilobytes = 64 << 10;  // beside what an undisturbed training takes

class HostileCheckpointTest : public PreemptionProcessTest {
 protected:
  std::string prefix(int64_t step) const { return fmt::format("{}/model.ckpt-{}", logdir(), step); }

  void change_entry(int64_t step, const std::string& key, const std::function<void(Entry&)>& change) {
    std::map<std::string, std::string> entries = entries_of(index_path(prefix(step)));
    ASSERT_TRUE(entries.contains(key));
    Entry entry;
    ASSERT_TRUE(entry.ParseFromString(entries[key]));
    change(entry);
    entries[key] = entry.SerializeAsString();
    write_table(index_path(prefix(step)), entries);
  }
  void cut(const std::string& path, double part) const {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(std::filesystem::file_size(path) * part));
  }

  // Makes checkpoints, has the newest one spoilt, and starts the training once more, twice.
  void expect_the_one_before(const std::function<void(int64_t newest)>& spoil, const std::string& reason) {
    const int64_t newest = make_checkpoints();
    const int64_t usual_memory = most_memory_at_a_start();
    spoil(newest);
    const auto training = start();
    const int64_t begun = first_step(*training);
    ASSERT_GE(begun, 0) << "not even the one before was restored";
    EXPECT_LT(begun, newest);
    expect_whole(begun);
    EXPECT_THAT(training->errors(), AllOf(HasSubstr(fmt::format("model.ckpt-{}", newest)), HasSubstr(reason)));
    EXPECT_FALSE(checkpoint_exists(FileSystem::real(), prefix(newest))) << "it was not put aside";
    EXPECT_TRUE(FileSystem::real().exists(index_path(prefix(newest)) + ".corrupt"));
    EXPECT_LT(peak_kilobytes(*training), usual_memory + kMostMoreKilobytes);
    training->send(SIGTERM);
    EXPECT_EQ(training->wait(), kPreempted) << training->errors();
    expect_to_go_on_from(newest_step());
  }

 private:
  static std::map<std::string, std::string> entries_of(const std::string& path) {
    const Table table(FileSystem::real().open(path), path);
    std::map<std::string, std::string> entries;
    for (auto cursor = table.seek(""); cursor.valid(); cursor.next()) entries.emplace(cursor.key(), cursor.value());
    return entries;
  }
  static void write_table(const std::string& path, const std::map<std::string, std::string>& entries) {
    const auto file = FileSystem::real().create(path);
    TableWriter table(*file);
    for (const auto& [key, value] : entries) table.add(key, value);
    table.finish();
    file->close();
  }

  static int64_t peak_kilobytes(const Process& process) {
    std::ifstream status(fmt::format("/proc/{}/status", process.pid()));
    const std::string text(std::istreambuf_iterator<char>(status), {});
    return number_after("VmHWM:", text);
  }
  // Of one that is killed before its first step, so that nothing in the directory changes.
  int64_t most_memory_at_a_start() const {
    const auto training = start({"WAITS_BEFORE_STEPS=60000"});
    const int64_t kilobytes = peak_kilobytes(*training);
    EXPECT_GT(kilobytes, 0);
    training->send(SIGKILL);
    training->wait();
    return kilobytes;
  }
};

TEST_P(HostileCheckpointTest, MillionsOfSlices) {
  const auto claim_slices = [](Entry& entry) {
    for (int i = 0; i < kMillions; ++i) entry.add_slices();
  };
  expect_the_one_before([&](int64_t newest) { change_entry(newest, "weights", claim_slices); }, "2000000 slices");
}

TEST_P(HostileCheckpointTest, MillionsOfDimensions) {
  const auto claim_dimensions = [](Entry& entry) {
    for (int i = 0; i < kMillions; ++i) entry.mutable_shape()->add_dim();
  };
  expect_the_one_before([&](int64_t newest) { change_entry(newest, "weights", claim_dimensions); },
                        "dimensions, but at most 254 are possible");
}

TEST_P(HostileCheckpointTest, AnOffsetThatTheDataFileHasNot) {
  const auto claim_offset = [](Entry& entry) { entry.set_offset(int64_t{1} << 60); };
  expect_the_one_before([&](int64_t newest) { change_entry(newest, "weights", claim_offset); }, ".data-00000-of-00001");
}

TEST_P(HostileCheckpointTest, ASizeThatIsNotThatOfTheShape) {
  const auto claim_size = [](Entry& entry) { entry.set_size(int64_t{1} << 60); };
  expect_the_one_before([&](int64_t newest) { change_entry(newest, "weights", claim_size); }, "weights");
}

TEST_P(HostileCheckpointTest, ATableThatIsCutShort) {
  expect_the_one_before([&](int64_t newest) { cut(index_path(prefix(newest)), 0.5); }, ".index");
}

TEST_P(HostileCheckpointTest, AnIndexOfNoBytes) {
  expect_the_one_before([&](int64_t newest) { cut(index_path(prefix(newest)), 0); }, ".index");
}

TEST_P(HostileCheckpointTest, DataOfNoBytes) {
  expect_the_one_before([&](int64_t newest) { cut(data_path(prefix(newest), 0, 1), 0); }, ".data-00000-of-00001");
}

INSTANTIATE_TEST_SUITE_P(, HostileCheckpointTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul
