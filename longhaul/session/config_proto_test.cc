#include "longhaul/session/config_proto.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "longhaul/proto/config.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Message>
Message parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

SessionOptions session_options(const std::string& text) {
  return session_options_of(parsed<proto::ConfigProto>(text));
}

RunOptions run_options(const std::string& text) {
  return run_options_of(parsed<proto::RunOptions>(text));
}

TEST(ConfigProto, BecomesSessionOptions) {
  const SessionOptions options = session_options(R"(
      device_count { key: 'CPU' value: 2 } intra_op_parallelism_threads: 3 operation_timeout_in_ms: 1500
      device_filters: '/job:ps' device_filters: '/job:worker/task:1' allow_soft_placement: true
      log_device_placement: true isolate_session_state: true rpc_options { use_rpc_for_inprocess_master: true }
      cluster_def { job { name: 'ps' tasks { key: 0 value: 'a:1' } } }
      experimental { share_session_state_in_clusterspec_propagation: true })");
  EXPECT_EQ(options.device_count, (std::map<std::string, int>{{"CPU", 2}}));
  EXPECT_EQ(options.intra_op_parallelism_threads, 3);
  EXPECT_EQ(options.operation_timeout, Seconds{1.5});
  EXPECT_THAT(options.device_filters, ElementsAre("/job:ps", "/job:worker/task:1"));
  EXPECT_TRUE(options.allow_soft_placement);
  EXPECT_TRUE(options.log_device_placement);
  EXPECT_TRUE(options.isolate_session_state);
  EXPECT_TRUE(options.use_rpc_for_inprocess_master);
  EXPECT_TRUE(options.share_session_state_in_clusterspec_propagation);
  EXPECT_EQ(options.cluster_def.at("ps").at(0), "a:1");
  EXPECT_THAT(session_options("").device_filters, IsEmpty());
}

TEST(ConfigProto, IsMadeOfSessionOptions) {
  const SessionOptions options{.device_count = {{"CPU", 2}},
                               .intra_op_parallelism_threads = 3,
                               .operation_timeout = Seconds{1.5},
                               .device_filters = {"/job:ps", "/job:worker/task:1"},
                               .allow_soft_placement = true,
                               .log_device_placement = true,
                               .isolate_session_state = true,
                               .cluster_def = {{"ps", {{0, "a:1"}, {4, "b:1"}}}},
                               .share_session_state_in_clusterspec_propagation = true,
                               .use_rpc_for_inprocess_master = true};
  const SessionOptions again = session_options_of(config_proto_of(options));
  EXPECT_EQ(again.device_count, options.device_count);
  EXPECT_EQ(again.intra_op_parallelism_threads, 3);
  EXPECT_EQ(again.operation_timeout, options.operation_timeout);
  EXPECT_EQ(again.device_filters, options.device_filters);
  EXPECT_EQ(again.cluster_def, options.cluster_def);
  EXPECT_TRUE(again.allow_soft_placement && again.log_device_placement && again.isolate_session_state);
  EXPECT_TRUE(again.share_session_state_in_clusterspec_propagation && again.use_rpc_for_inprocess_master);
  EXPECT_EQ(config_proto_of({}).ByteSizeLong(), 0u);
  EXPECT_THROW(config_proto_of({.snapshot_memory = 1}), UnimplementedError);
}

TEST(ConfigProto, OptionsAreFilledInFromAServers) {  // unlike SE-10
  const SessionOptions server{.device_count = {{"CPU", 2}},
                              .operation_timeout = Seconds{5},
                              .device_filters = {"/job:ps"},
                              .isolate_session_state = true};
  const SessionOptions merged = with_defaults(SessionOptions{.device_filters = {"/job:worker"}}, server);
  EXPECT_THAT(merged.device_filters, ElementsAre("/job:worker"));
  EXPECT_EQ(merged.operation_timeout, Seconds{5});
  EXPECT_TRUE(merged.isolate_session_state);
  EXPECT_THAT(merged.device_count, IsEmpty()) << "the devices are the server's own";
}

TEST(ConfigProto, AcceptsValuesThatAskForWhatIsDoneAnyway) {
  EXPECT_NO_THROW(session_options(R"(
      inter_op_parallelism_threads: 1 gpu_options { allow_growth: true } experimental { executor_type: 'DEFAULT' }
      graph_options { optimizer_options { opt_level: L0 global_jit_level: OFF } })"));
}

TEST(ConfigProto, RefusesWhatItCannotHeedByName) {  // MA-16, unlike GP-17
  const std::pair<std::string, std::string> cases[] = {
      {"gpu_options { per_process_gpu_memory_fraction: 0.5 }",
       "ConfigProto.gpu_options.per_process_gpu_memory_fraction is set"},
      {"inter_op_parallelism_threads: 2", "ConfigProto.inter_op_parallelism_threads is set"},
      {"graph_options { optimizer_options { global_jit_level: ON_1 } }",
       "ConfigProto.graph_options.optimizer_options.global_jit_level is set"},
      {"graph_options { enable_bfloat16_sendrecv: true }", "ConfigProto.graph_options.enable_bfloat16_sendrecv is set"},
      {"graph_options { enable_recv_scheduling: true }", "ConfigProto.graph_options.enable_recv_scheduling is set"},
      {"session_inter_op_thread_pool {}", "ConfigProto.session_inter_op_thread_pool is set"},
      {"use_per_session_threads: true", "ConfigProto.use_per_session_threads is set"},
      {"experimental { executor_type: 'SINGLE' }", "ConfigProto.experimental.executor_type is set"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(error_of<UnimplementedError>([&] { session_options(text); }), HasSubstr(why)) << text;
  }
}

TEST(ConfigProto, RefusesOptionsOfRpcByName) {  // unlike SE-11
  for (const std::string name : {"compression_algorithm: 'gzip'", "compression_level: 2", "cache_rpc_response: true",
                                 "disable_session_connection_sharing: true"}) {
    EXPECT_THAT(error_of<UnimplementedError>([&] { session_options("rpc_options { " + name + " }"); }),
                HasSubstr("ConfigProto.rpc_options." + name.substr(0, name.find(':')) + " is set"));
  }
}

TEST(ConfigProto, RefusesFieldsThatItDoesNotKnow) {
  proto::ConfigProto config;
  auto* graph_options = config.mutable_graph_options();
  auto* unknown = graph_options->GetReflection()->MutableUnknownFields(graph_options);
  unknown->AddLengthDelimited(10, "");
  EXPECT_NO_THROW(session_options_of(config));
  unknown->AddLengthDelimited(10, "x");
  EXPECT_THAT(error_of<UnimplementedError>([&] { session_options_of(config); }),
              HasSubstr("ConfigProto.graph_options.rewrite_options is set"));
  unknown->Clear();
  unknown->AddVarint(99, 0);
  EXPECT_THAT(error_of<UnimplementedError>([&] { session_options_of(config); }),
              HasSubstr("ConfigProto.graph_options, field 99, is set"));
  proto::RunOptions run;
  run.GetReflection()->MutableUnknownFields(&run)->AddLengthDelimited(6, "x");
  EXPECT_THAT(error_of<UnimplementedError>([&] { run_options_of(run); }), HasSubstr("RunOptions.debug_options is set"));
}

TEST(ConfigProto, RefusesValuesThatAreNone) {
  EXPECT_THAT(refusal_of([] { session_options("operation_timeout_in_ms: -1"); }),
              HasSubstr("ConfigProto.operation_timeout_in_ms is -1, below 0"));
  EXPECT_THAT(refusal_of([] { session_options("device_filters: 'nonsense'"); }),
              HasSubstr("ConfigProto.device_filters: device \"nonsense\""));
  EXPECT_THAT(refusal_of([] { session_options("cluster_def { job { name: 'ps' } job { name: 'ps' } }"); }),
              HasSubstr("Duplicate job ID in cluster definition: 'ps'"));
  EXPECT_THAT(refusal_of([] { run_options("timeout_in_ms: -5"); }), HasSubstr("RunOptions.timeout_in_ms is -5"));
  proto::RunOptions run;
  run.set_trace_level(static_cast<proto::RunOptions::TraceLevel>(7));
  EXPECT_THAT(refusal_of([&] { run_options_of(run); }), HasSubstr("RunOptions.trace_level is 7"));
}

TEST(ConfigProto, OfARunBecomesRunOptions) {
  const RunOptions expected = {
      .timeout = Seconds{2}, .trace_level = TraceLevel::kFullTrace, .output_partition_graphs = true};
  EXPECT_EQ(run_options("timeout_in_ms: 2000 trace_level: FULL_TRACE output_partition_graphs: true "
                        "inter_op_thread_pool: -1 experimental {}"),
            expected);
  EXPECT_THAT(error_of<UnimplementedError>([] { run_options("inter_op_thread_pool: 1"); }),
              HasSubstr("RunOptions.inter_op_thread_pool is set"));
}

TEST(ConfigProto, IsFilledInFromAServersDefaults) {  // unlike SE-10
  const auto merged = with_defaults(
      parsed<proto::ConfigProto>("operation_timeout_in_ms: 5 device_filters: '/job:b'"),
      parsed<proto::ConfigProto>(
          "operation_timeout_in_ms: 9 isolate_session_state: true device_filters: '/job:a' device_filters: '/job:c'"));
  EXPECT_EQ(merged.operation_timeout_in_ms(), 5);
  EXPECT_TRUE(merged.isolate_session_state());
  EXPECT_THAT(merged.device_filters(), ElementsAre("/job:b"));
  EXPECT_THAT(with_defaults({}, merged).device_filters(), ElementsAre("/job:b"));
}

TEST(SessionOptions, TellHowManyDevicesThereMayBe) {
  EXPECT_EQ(number_of_cpus({}), 1);
  EXPECT_EQ(most_gpus({}), std::numeric_limits<int>::max());
  const SessionOptions options{.device_count = {{"CPU", 2}, {"GPU", 0}}};
  EXPECT_EQ(number_of_cpus(options), 2);
  EXPECT_EQ(most_gpus(options), 0);
  EXPECT_THAT(error_of<InvalidArgumentError>([] { most_gpus({.device_count = {{"GPU", -1}}}); }), HasSubstr("below 0"));
  EXPECT_THAT(error_of<InvalidArgumentError>([] { number_of_cpus({.device_count = {{"TPU", 1}}}); }),
              HasSubstr("there are no TPU devices"));
}

TEST(SessionOptions, ForServersAreRefusedInTheProcess) {
  EXPECT_NO_THROW(check_options_in_process({.operation_timeout = Seconds{1},
                                            .allow_soft_placement = true,
                                            .log_device_placement = true,
                                            .isolate_session_state = true}));
  const std::pair<SessionOptions, std::string> cases[] = {
      {{.device_filters = {"/job:ps"}}, "SessionOptions::device_filters is for sessions on servers"},
      {{.cluster_def = {{"ps", {{0, "a:1"}}}}}, "SessionOptions::cluster_def"},
      {{.share_session_state_in_clusterspec_propagation = true}, "SessionOptions::share_session_state"},
      {{.use_rpc_for_inprocess_master = true}, "SessionOptions::use_rpc_for_inprocess_master"},
  };
  for (const auto& [options, why] : cases) {
    EXPECT_THAT(error_of<UnimplementedError>([&] { check_options_in_process(options); }), HasSubstr(why));
  }
}

}  // namespace
}  // namespace longhaul
