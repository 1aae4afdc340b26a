#include "longhaul/launch/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const SlurmOptions kTwoJobs = {.jobs = {{"worker", SlurmOptions::kOtherTasks}, {"ps", 2}}};

// Five tasks on three nodes, this one being the fourth.
Variables five_tasks() {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_NTASKS", "5"},
          {"SLURM_STEP_NODELIST", "node[01-03]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
          {"SLURM_NODEID", "1"}};
}

LaunchedTask five_tasks_with(const Variables& changes, const SlurmOptions& options = kTwoJobs) {
  Variables variables = five_tasks();
  for (const auto& [name, value] : changes) variables[name] = value;
  return task_from_slurm(options, environment_of(variables));
}

TEST(Slurm, GivesRanksToTheJobsInTheOrderOfTheirNames) {  // CL-10
  const LaunchedTask task = five_tasks_with({});
  EXPECT_EQ(task.cluster, ClusterSpec({{"ps", {"node01:8888", "node01:8889"}},
                                       {"worker", {"node02:8888", "node02:8889", "node03:8888"}}}));
  EXPECT_EQ(task.job, "worker");
  EXPECT_EQ(task.index, 1);
  EXPECT_EQ(task.master(), "grpc://node02:8889");
  EXPECT_FALSE(task.is_chief());
  EXPECT_TRUE(five_tasks_with({{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}}).is_ps());
  EXPECT_TRUE(five_tasks_with({{"SLURM_PROCID", "2"}}).is_chief());
}

TEST(Slurm, TakesMpirunsRanksAndAnEvenNumberOfTasks) {  // CL-10
  const Variables variables = {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"SLURM_PROCID", "0"},         {"SLURM_NTASKS", "1"},
                               {"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_NTASKS_PER_NODE", "2"}};
  const LaunchedTask task =
      task_from_slurm({.jobs = {{"chief", 1}, {"worker", 3}}, .port_base = 2222}, environment_of(variables));
  EXPECT_EQ(task.cluster.task_address("worker", 2), "b:2223");
  EXPECT_EQ(task.index, 2);
}

TEST(Slurm, WithoutAStepIsAProcessThatTrainsAlone) {
  const LaunchedTask task = task_from_slurm(kTwoJobs, environment_of({}));
  EXPECT_TRUE(task.cluster.empty());
  EXPECT_TRUE(task.is_chief());
  EXPECT_EQ(task.master(), "");
}

TEST(Slurm, SaysWhichVariableIsWrong) {
  const std::pair<Variables, std::string> cases[] = {
      {{{"SLURM_PROCID", "x"}}, "SLURM_PROCID is 'x', but must be a number from 0"},
      {{{"SLURM_PROCID", "-1"}}, "SLURM_PROCID is '-1'"},
      {{{"SLURM_PROCID", "5"}}, "the rank 5 of 5 tasks"},
      {{{"SLURM_PROCID", "99999999999"}}, "SLURM_PROCID is '99999999999'"},
      {{{"SLURM_NTASKS", ""}}, "none of the variables OMPI_COMM_WORLD_SIZE, SLURM_NTASKS is set"},
      {{{"SLURM_NTASKS", "0"}}, "SLURM_NTASKS is '0', but must be a number from 1"},
      {{{"SLURM_NTASKS", "6"}}, "the 3 nodes of SLURM_STEP_NODELIST have 5 tasks in all, but the step has 6"},
      {{{"SLURM_STEP_NODELIST", ""}}, "none of the variables SLURM_STEP_NODELIST"},
      {{{"SLURM_STEP_NODELIST", "node[1-"}}, "SLURM_STEP_NODELIST: the list 'node[1-', at byte 7: want a number"},
      {{{"SLURM_STEP_NODELIST", "node[1-2]"}}, "is for 3 nodes, but the step has 2"},
      {{{"SLURM_STEP_TASKS_PER_NODE", "2(x"}}, "SLURM_STEP_TASKS_PER_NODE: the list '2(x'"},
      {{{"SLURM_NODEID", "2"}}, "start the program with srun --distribution=block"},
  };
  for (const auto& [changes, why] : cases) {
    EXPECT_THAT(refusal_of([&] { five_tasks_with(changes); }), HasSubstr(why));
  }
}

TEST(Slurm, RefusesJobsThatDoNotFitTheStep) {  // CL-10
  const std::pair<SlurmOptions, std::string> cases[] = {
      {{.jobs = {}}, "the step has 5 tasks, but the jobs have others in all"},
      {{.jobs = {{"ps", 2}, {"worker", 2}}}, "ps 2, worker 2"},
      {{.jobs = {{"ps", 5}, {"worker", SlurmOptions::kOtherTasks}}}, "the step has 5 tasks"},
      {{.jobs = {{"ps", 65536}, {"worker", 65536}, {"x", 65536}}}, "the step has 5 tasks"},
      {{.jobs = {{"ps", -1}, {"worker", -1}}}, "the job 'worker' cannot have -1 tasks"},
      {{.jobs = {{"ps", -2}, {"worker", 7}}}, "the job 'ps' cannot have -2 tasks"},
      {{.jobs = {{"chief", 2}, {"worker", 3}}}, "the job 'chief' must have one task"},
      {{.jobs = {{"a b", 5}}}, "Job name 'a b'"},
      {{.jobs = kTwoJobs.jobs, .port_base = 0}, "port_base must be from 1 to 65535, not 0"},
      {{.jobs = kTwoJobs.jobs, .port_base = 65535}, "the port must be a number from 0 to 65535"},
  };
  for (const auto& [options, why] : cases) {
    EXPECT_THAT(refusal_of([&] { five_tasks_with({}, options); }), HasSubstr(why));
  }
}

}  // namespace
}  // namespace longhaul
