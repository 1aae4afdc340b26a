#include "longhaul/launch/tf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kCluster = R"("cluster": {"chief": ["chief0:1"], "ps": ["ps0:1", "ps1:1"],
                                            "worker": ["worker0:1", "worker1:1"]})";

LaunchedTask own_task_of(const std::string& type, int index) {
  return parse_tf_config("{" + kCluster + R"(, "task": {"type": ")" + type + R"(", "index": )" + std::to_string(index) +
                         "}}");
}

TEST(TfConfig, NamesTheClusterAndTheOwnTask) {  // CL-9
  const LaunchedTask task = own_task_of("worker", 1);
  EXPECT_EQ(task.cluster,
            ClusterSpec({{"chief", {"chief0:1"}}, {"ps", {"ps0:1", "ps1:1"}}, {"worker", {"worker0:1", "worker1:1"}}}));
  EXPECT_EQ(task.job, "worker");
  EXPECT_EQ(task.index, 1);
  EXPECT_EQ(task.master(), "grpc://worker1:1");
}

TEST(TfConfig, IsReadFromTheEnvironment) {  // CL-9
  EXPECT_EQ(task_from_tf_config(environment_of({})).master(), "");
  EXPECT_TRUE(task_from_tf_config(environment_of({})).is_chief());
  const std::string alone = R"({"cluster": {"worker": ["a:1"]}})";
  EXPECT_EQ(task_from_tf_config(environment_of({{"TF_CONFIG", alone}})).master(), "");
  EXPECT_EQ(task_from_tf_config(environment_of({{"TF_CONFIG", alone}})).cluster.num_tasks("worker"), 1);
  const std::string elsewhere = R"({"session_master": "grpc://b:1", "cluster": {"worker": ["a:1", "b:1"]}})";
  EXPECT_EQ(task_from_tf_config(environment_of({{"TF_CONFIG", elsewhere}})).master(), "grpc://b:1");
}

TEST(TfConfig, GivesEachJobItsPartAndItsFilters) {  // CL-11
  EXPECT_TRUE(own_task_of("chief", 0).is_chief());
  EXPECT_FALSE(own_task_of("worker", 0).is_chief());
  EXPECT_TRUE(own_task_of("ps", 1).is_ps());
  EXPECT_TRUE(parse_tf_config(R"({"cluster": {"ps": ["p:1"], "worker": ["w:1"]},
                                  "task": {"type": "worker", "index": 0}})")
                  .is_chief());
  EXPECT_THAT(own_task_of("chief", 0).device_filters(), ElementsAre("/job:ps", "/job:chief"));
  EXPECT_THAT(own_task_of("worker", 1).device_filters(), ElementsAre("/job:ps", "/job:worker/task:1"));
  EXPECT_THAT(own_task_of("ps", 0).device_filters(),
              ElementsAre("/job:ps", "/job:worker", "/job:chief", "/job:master"));
  EXPECT_THAT(parse_tf_config("{}").device_filters(), IsEmpty());
}

TEST(TfConfig, KeepsTheEvaluatorOutsideTheCluster) {  // CL-11
  const LaunchedTask evaluator = own_task_of("evaluator", 0);
  EXPECT_TRUE(evaluator.is_evaluator());
  EXPECT_FALSE(evaluator.is_chief());
  EXPECT_EQ(evaluator.master(), "");
  EXPECT_THAT(evaluator.device_filters(), IsEmpty());
}

TEST(TfConfig, KnowsWhatOperatorsWrite) {
  const LaunchedTask task = parse_tf_config(
      R"({"cluster": {"master": ["m:1"], "worker": {"0": "w0:1", "2": "w2:1"}},
          "task": {"type": "worker", "index": "2", "trial": "1"}, "environment": "cloud", "rpc_layer": "grpc"})");
  EXPECT_EQ(task.index, 2);
  EXPECT_EQ(task.master(), "grpc://w2:1");
  EXPECT_TRUE(
      parse_tf_config(R"({"cluster": {"master": ["m:1"]}, "task": {"type": "master", "index": 0}})").is_chief());
  EXPECT_TRUE(parse_tf_config(R"({"task": {"type": "worker", "index": 0}})").is_chief());
  EXPECT_TRUE(parse_tf_config(R"({"cluster": {"trainer": ["a:1"]}})").is_chief());
  EXPECT_TRUE(parse_tf_config(" \n").is_chief());
}

TEST(TfConfig, SaysWhatIsWrongWithIt) {  // CL-11
  const std::pair<std::string, std::string> cases[] = {
      {"{", "it is not JSON"},
      {"[]", "it must be an object, not array"},
      {R"({"cluster": 3})", "\"cluster\" must be an object, not number"},
      {R"({"cluster": {"ps": "a:1"}})", "the tasks of the job 'ps' must be a list of addresses, not string"},
      {R"({"cluster": {"ps": ["a:1", 3]}})", "the address of task 1 of the job 'ps' must be a text, not number"},
      {R"({"cluster": {"ps": {"x": "a:1"}}})", "an index of the job 'ps' is 'x', which is not an index"},
      {R"({"cluster": {"ps": ["a"]}})", "task 0 of job 'ps': Could not interpret \"a\""},
      {R"({"cluster": {"a b": ["a:1"]}})", "Job name 'a b'"},
      {R"({"cluster": {"ps": ["a:1"], "ps": ["b:1"]}})", "the name \"ps\" is twice in one object"},
      {R"({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}})", "there is a \"cluster\" but no \"task\""},
      {"{" + kCluster + R"(, "task": {"index": 0}})", "\"task\" has no \"type\""},
      {"{" + kCluster + R"(, "task": {"type": "ps"}})", "\"task\" has no \"index\""},
      {"{" + kCluster + R"(, "task": {"type": "ps", "index": 1.5}})", "must be an integer, not 1.5"},
      {"{" + kCluster + R"(, "task": {"type": "ps", "index": -1}})", "the own task's index is -1"},
      {"{" + kCluster + R"(, "task": {"type": "ps", "index": 99999999999999999999}})", "\"index\" of \"task\""},
      {"{" + kCluster + R"(, "task": {"type": "ps", "index": 2}})", "the job 'ps' has no task 2"},
      {"{" + kCluster + R"(, "task": {"type": "moon", "index": 0}})", "the cluster has no job 'moon'"},
      {R"({"cluster": {"chief": ["a:1"], "master": ["b:1"]}, "task": {"type": "chief", "index": 0}})",
       "a job 'chief' and a job 'master'"},
      {R"({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})", "must have one task"},
      {R"({"cluster": {"evaluator": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})",
       "the job 'evaluator' is not part of the cluster"},
      {R"({"cluster": {"ps": ["a:1"], "worker": {"1": "b:1"}}, "task": {"type": "worker", "index": 1}})",
       "no task would be the chief: the cluster has neither a job 'chief' nor a worker 0; its jobs are [ps, worker]"},
      {R"({"cluster": {"ps": ["a:0"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}})",
       "task 0 of job 'ps' has the address a:0: with port 0 the system chooses a port"},
      {R"({"task": {"type": "worker", "index": 1}})", "the task must be worker 0"},
      {R"({"task": {"type": "ps", "index": 0}})", "the task must be worker 0"},
      {R"({"rpc_layer": "http"})", "\"rpc_layer\" must be \"grpc\", not \"http\""},
      {std::string(100, '['), "nested more than 8 deep"},
      {std::string((1 << 20) + 1, ' ') + "{}", "bytes; 1048576 are the most"},
      {"{\"cluster\": \"\xff\"}", "it is not JSON"},
  };
  for (const auto& [text, why] : cases) {
    const std::string refusal = refusal_of([&] { parse_tf_config(text); });
    EXPECT_THAT(refusal, HasSubstr(why)) << text.substr(0, 200);
    EXPECT_THAT(refusal, ::testing::StartsWith("TF_CONFIG: "));
    EXPECT_LT(refusal.size(), 1000u);
  }
}

TEST(ClusterText, IsThatOfAnyTask) {
  const ClusterSpec cluster({{"ps", {"a:1"}}, {"worker", {"b:1", "c:1"}}});
  const std::string jobs = R"({"ps": ["a:1"], "worker": ["b:1", "c:1"]})";
  EXPECT_EQ(parse_cluster(jobs, "x.json"), cluster);
  EXPECT_EQ(parse_cluster(R"({"cluster": )" + jobs + "}", "x.json"), cluster);
  EXPECT_EQ(parse_cluster(R"({"cluster": )" + jobs + R"(, "task": {"type": "worker", "index": 1}})", "x.json"),
            cluster);
  EXPECT_EQ(parse_cluster(R"({"cluster": ["a:1"]})", "x.json").jobs(), std::vector<std::string>{"cluster"});
}

TEST(ClusterText, ItsErrorsNameItsPlace) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { parse_cluster(text, "x.json"); }); };
  EXPECT_THAT(refusal(""), HasSubstr("x.json: it is not JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("x.json: it must be an object, not array"));
  EXPECT_THAT(refusal("{}"), HasSubstr("x.json: there is no job"));
  EXPECT_THAT(refusal(R"({"cluster": {}})"), HasSubstr("x.json: there is no job"));
  EXPECT_THAT(refusal(R"({"ps": ["a"]})"), HasSubstr("x.json: "));
  EXPECT_THAT(refusal(R"({"ps": 3})"), HasSubstr("must be a list of addresses"));
}

}  // namespace
}  // namespace longhaul
