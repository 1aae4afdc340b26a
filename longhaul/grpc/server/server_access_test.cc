// What servers let their clients do: which files operations may use, and who may call.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "longhaul/cluster/certificates/cluster_certificates.h"
#include "longhaul/grpc/raw_channel_fixture.h"
#include "longhaul/grpc/server/server_fixture.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The parameter: whether the session calls its server, as from another process.
class ServerFiles : public ::testing::TestWithParam<bool> {
 protected:
  static Server server_of(const ServerOptions& options) {
    return Server(ClusterSpec({{"local", {"localhost:0"}}}), options);
  }
  static std::string written(const testing::TemporaryDirectory& directory) {
    std::ofstream(directory.file("names")) << "one two";
    return directory.file("names");
  }
  // What a step of a session on it reads there, or the error.
  static std::string read(const Server& server, const std::string& path) {
    Graph graph;
    const Scope root(graph);
    const Output text = ops::read_file(root, ops::constant(root, Tensor::scalar(path)));
    std::string found;
    const std::string error = coded_error_of([&] {
      const auto session = new_session(server.target(), graph, {.use_rpc_for_inprocess_master = GetParam()});
      found = session->run(text).item<std::string>();
    });
    return found + error;
  }

  const testing::TemporaryDirectory root_, other_;
};

TEST_P(ServerFiles, AreThoseBelowItsRootsAlone) {
  const Server server = server_of({.file_roots = {root_.path()}});
  EXPECT_EQ(read(server, written(root_)), "one two");
  EXPECT_THAT(read(server, written(other_)),
              AllOf(StartsWith("PERMISSION_DENIED: "), HasSubstr(other_.file("names")), HasSubstr(root_.path())));
  EXPECT_THAT(read(server, root_.path() + "/../names"), HasSubstr("PERMISSION_DENIED: "));
}

TEST_P(ServerFiles, AreAllIfOnlyThisMachineReachesIt) {
  EXPECT_EQ(read(server_of({}), written(other_)), "one two");
}

TEST_P(ServerFiles, AreNoneOnTheNetworkIfItWasToldOfNone) {
  const Server server = server_of({.listen = "0.0.0.0:0", .security = {.insecure = true}});
  EXPECT_THAT(read(server, written(root_)), AllOf(HasSubstr("PERMISSION_DENIED: "), HasSubstr("file_roots")));
}

INSTANTIATE_TEST_SUITE_P(Paths, ServerFiles, ::testing::Bool(),
                         [](const auto& path) { return path.param ? "Called" : "InProcess"; });

// Sessions of this process, whose servers are called as those of others.
class ServerClients : public ::testing::Test {
 protected:
  ServerClients() {
    std::ofstream(token_) << "a-secret-of-twenty-four-letters\n";
    EXPECT_EQ(chmod(token_.c_str(), 0600), 0);
  }
  ~ServerClients() override { set_client_security({}); }

  std::string error_of_session(const Server& server) {
    CounterModel model;
    SessionOptions options;
    options.use_rpc_for_inprocess_master = true;
    options.task_wait = Seconds{1};
    return coded_error_of([&] { new_session(server.target(), model.graph, options)->run(model.init); });
  }

  const testing::TemporaryDirectory directory_;
  const std::string token_ = directory_.file("token");
};

TEST_F(ServerClients, ShowWhatTheyWereGiven) {
  const Server server(ClusterSpec({{"local", {"localhost:0"}}}), {.security = {.token_file = token_}});
  EXPECT_THAT(error_of_session(server), AllOf(HasSubstr("UNAUTHENTICATED: "), HasSubstr("token")));
  set_client_security({.token_file = token_});
  EXPECT_EQ(error_of_session(server), "");
  set_client_security({});
  EXPECT_THAT(error_of_session(server), HasSubstr("UNAUTHENTICATED: "));
}

// With the files that `longhaul certificates` makes.
TEST_F(ServerClients, NeedACertificateOfTheClustersCa) {
  const auto security_of = [&](const char* cluster, const std::string& task) {
    const std::string at = directory_.file(cluster) + "/";
    return TransportSecurity{
        .certificate_file = at + task + ".crt", .key_file = at + task + ".key", .ca_file = at + "ca.crt"};
  };
  const ClusterSpec addresses({{"ps", {"localhost:2222"}}, {"worker", {"localhost:2223"}}});
  for (const char* cluster : {"own", "other"})
    write_cluster_certificates(addresses, {.directory = directory_.file(cluster)});
  const Server server(ClusterSpec({{"ps", {"localhost:0"}}}), {.security = security_of("own", "ps-0")});
  EXPECT_THAT(error_of_session(server), HasSubstr("UNAVAILABLE: ")) << "without a certificate";
  set_client_security(security_of("other", "worker-0"));
  EXPECT_THAT(error_of_session(server), HasSubstr("UNAVAILABLE: ")) << "with one of another CA";
  set_client_security(security_of("own", "worker-0"));
  EXPECT_EQ(error_of_session(server), "");
}

TEST_F(ServerClients, OfOtherProgramsAreRefusedToo) {
  constexpr int kUnauthenticated = 16;
  const Server server(ClusterSpec({{"local", {"localhost:0"}}}), {.security = {.token_file = token_}});
  const RawChannel channel(server.target().substr(sizeof("grpc://") - 1));
  for (const char* method : {"MasterService/ListDevices", "MasterService/Reset", "WorkerService/GetStatus"})
    EXPECT_EQ(channel.call(std::string("/tensorflow.") + method, "").code, kUnauthenticated) << method;
}

}  // namespace
}  // namespace longhaul
