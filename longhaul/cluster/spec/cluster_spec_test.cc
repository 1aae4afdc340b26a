#include "longhaul/cluster/spec/cluster_spec.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/proto/cluster.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

proto::ClusterDef cluster_def(const std::string& text) {
  proto::ClusterDef cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &cluster)) << text;
  return cluster;
}

const char* const kTwoJobs = R"(
    job { name: 'ps' tasks { key: 0 value: 'ps0:2222' } tasks { key: 1 value: 'ps1:2222' } }
    job { name: 'worker' tasks { key: 0 value: 'worker0:2222' } tasks { key: 1 value: 'worker1:2222' }
          tasks { key: 2 value: 'worker2:2222' } })";

ClusterSpec two_jobs() {
  return ClusterSpec({{"worker", {"worker0:2222", "worker1:2222", "worker2:2222"}}, {"ps", {"ps0:2222", "ps1:2222"}}});
}

ClusterSpec sparse() {
  return ClusterSpec({{"sparse", {{0, "sparse0:2222"}, {3, "sparse3:2222"}}}});
}

TEST(ClusterSpec, IsTheSameFromListsMapsItselfAndItsProto) {  // CL-1
  const proto::ClusterDef expected = cluster_def(kTwoJobs);
  const std::map<std::string, JobTasks> maps = {
      {"ps", std::map<int, std::string>{{1, "ps1:2222"}, {0, "ps0:2222"}}},
      {"worker", std::vector<std::string>{"worker0:2222", "worker1:2222", "worker2:2222"}}};
  for (const ClusterSpec& spec : {two_jobs(), ClusterSpec(maps), ClusterSpec(two_jobs()), ClusterSpec(expected)}) {
    EXPECT_EQ(spec, two_jobs());
    EXPECT_TRUE(MessageDifferencer::Equals(spec.as_cluster_def(), expected)) << spec.to_string();
    EXPECT_EQ(spec.as_cluster_def().job(0).name(), "ps");
  }
}

TEST(ClusterSpec, GivesListsWhereIndicesAreWithoutGaps) {  // CL-2
  const ClusterSpec spec({{"ps", {"ps0:1"}}, {"worker", JobTasks()}, {"late", {{1, "late1:1"}}}});
  const auto dict = spec.as_dict();
  EXPECT_TRUE(dict.at("ps").is_list());
  EXPECT_THAT(dict.at("ps").addresses(), ElementsAre("ps0:1"));
  EXPECT_TRUE(dict.at("worker").is_list());
  EXPECT_THAT(dict.at("worker").addresses(), IsEmpty());
  EXPECT_FALSE(dict.at("late").is_list());
  EXPECT_EQ(ClusterSpec(dict), spec);
  EXPECT_TRUE(MessageDifferencer::Equals(ClusterSpec({{"worker", JobTasks()}}).as_cluster_def(),
                                         cluster_def("job { name: 'worker' }")));
}

TEST(ClusterSpec, CountsAndNamesItsTasks) {  // CL-3
  EXPECT_THAT(two_jobs().jobs(), ElementsAre("ps", "worker"));
  EXPECT_EQ(two_jobs().num_tasks("worker"), 3);
  EXPECT_EQ(sparse().num_tasks("sparse"), 2);
  EXPECT_THAT(sparse().task_indices("sparse"), ElementsAre(0, 3));
  EXPECT_EQ(sparse().task_address("sparse", 3), "sparse3:2222");
  EXPECT_THAT(sparse().job_tasks("sparse"), ElementsAre("sparse0:2222", std::nullopt, std::nullopt, "sparse3:2222"));
  EXPECT_THAT(ClusterSpec({{"ps", JobTasks()}}).job_tasks("ps"), IsEmpty());
  const ClusterSpec spec = sparse();
  const std::string no_job = "No such job in cluster: 'ps'; its jobs are [sparse]";
  EXPECT_EQ(refusal_of([&] { spec.num_tasks("ps"); }), no_job);
  EXPECT_EQ(refusal_of([&] { spec.task_indices("ps"); }), no_job);
  EXPECT_EQ(refusal_of([&] { spec.task_address("ps", 0); }), no_job);
  EXPECT_EQ(refusal_of([&] { spec.job_tasks("ps"); }), no_job);
  for (const int missing : {-1, 1, 4}) {
    EXPECT_EQ(refusal_of([&] { spec.task_address("sparse", missing); }),
              "No task with index " + std::to_string(missing) + " in job 'sparse'");
  }
}

TEST(ClusterSpec, HasATextATruthAndAnEquality) {  // CL-4
  const ClusterSpec spec({{"ps", {"ps0:1111"}}, {"worker", {"worker0:3333", "worker1:4444"}}});
  EXPECT_EQ(spec.to_string(), "ClusterSpec({'ps': ['ps0:1111'], 'worker': ['worker0:3333', 'worker1:4444']})");
  EXPECT_EQ(sparse().to_string(), "ClusterSpec({'sparse': {0: 'sparse0:2222', 3: 'sparse3:2222'}})");
  EXPECT_EQ(ClusterSpec().to_string(), "ClusterSpec({})");
  EXPECT_FALSE(ClusterSpec());
  EXPECT_TRUE(spec);
  EXPECT_EQ(ClusterSpec({{"w", {{0, "x:1"}}}}), ClusterSpec({{"w", {"x:1"}}}));
  EXPECT_NE(ClusterSpec({{"w", {"x:1", "y:1"}}}), ClusterSpec({{"w", {"y:1", "x:1"}}}));
  EXPECT_NE(spec, ClusterSpec());
}

TEST(ClusterSpec, MixesDenseAndSparseJobs) {  // CL-5
  const ClusterSpec spec({{"ps", {"a:1", "b:1"}}, {"worker", {{0, "x:1"}, {2, "y:1"}}}});
  const proto::ClusterDef def = spec.as_cluster_def();
  EXPECT_EQ(ClusterSpec(def), spec);
  EXPECT_TRUE(MessageDifferencer::Equals(ClusterSpec(def).as_cluster_def(), def));
  EXPECT_THAT(spec.job_tasks("worker"), ElementsAre("x:1", std::nullopt, "y:1"));
}

TEST(ClusterSpec, RefusesWhatCannotBeACluster) {  // CL-6, unlike CL-7
  const std::pair<std::function<void()>, std::string> cases[] = {
      {[] { ClusterSpec({{"", {"a:1"}}}); }, "Job name '' must be a letter"},
      {[] { ClusterSpec({{"1", {"a:1"}}}); }, "Job name '1' must be a letter"},
      {[] { ClusterSpec({{"a/b", {"a:1"}}}); }, "Job name 'a/b'"},
      {[] { ClusterSpec({{"ps", {"ps0:1"}}, {"worker", {"w0:1", "w1"}}}); },
       "task 1 of job 'worker': Could not interpret \"w1\" as a host-port pair: want host:port"},
      {[] { ClusterSpec({{"ps", {{-1, "a:1"}}}}); }, "task -1 of job 'ps' ('a:1'): an index must be from 0 to 1048575"},
      {[] { ClusterSpec({{"ps", {{1 << 20, "a:1"}}}}); }, "task 1048576 of job 'ps'"},
      {[] { ClusterSpec({{"ps", {"a:1"}}, {"ps", {"b:1"}}}); }, "Duplicate job ID in cluster definition: 'ps'"},
      {[] { ClusterSpec(cluster_def("job { name: 'ps' } job { name: 'ps' }")); }, "Duplicate job ID"},
      {[] { ClusterSpec({{"ps", {"a:1", "b:1"}}, {"worker", {"A:1"}}}); },
       "task 0 of job 'ps' and task 0 of job 'worker' have the same address a:1"},
  };
  for (const auto& [make, why] : cases) EXPECT_THAT(refusal_of(make), HasSubstr(why));
}

TEST(ClusterSpec, SeveralTasksMayLetTheSystemChooseTheirPorts) {
  EXPECT_EQ(ClusterSpec({{"local", {"localhost:0", "localhost:0"}}}).num_tasks("local"), 2);
}

TEST(TaskName, NamesATaskOfTheCluster) {
  EXPECT_EQ(task_name({"worker", 2}), "/job:worker/replica:0/task:2");
  EXPECT_EQ(parse_task_name("/job:worker/replica:0/task:2"), (TaskId{"worker", 2}));
  EXPECT_EQ(address_of(sparse(), "/job:sparse/task:3"), "sparse3:2222");
  EXPECT_THAT(refusal_of([] { address_of(sparse(), "/job:sparse/replica:0/task:1"); }),
              HasSubstr("No task with index"));
  EXPECT_THAT(refusal_of([] { address_of(sparse(), "/job:ps/replica:0/task:0"); }), HasSubstr("No such job"));
  for (const char* bad : {"", "/job:a", "/task:0", "/job:a/replica:1/task:0", "/job:a/task:0/cpu:0", "worker"}) {
    EXPECT_THROW(parse_task_name(bad), InvalidArgumentError) << bad;
  }
}

}  // namespace
}  // namespace longhaul
