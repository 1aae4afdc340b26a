#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/cluster/transport/wire_call.h"
#include "longhaul/cluster/wire/master_service.h"
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/proto/master.pb.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A call without a network, whose answer a test waits for. Any thread.
class FakeWireCall : public WireCall {
 public:
  FakeWireCall(std::string path, Slices request, std::optional<Seconds> time_left = {})
      : path_(std::move(path)), request_(std::move(request)), time_left_(time_left) {}

  const std::string& path() const override { return path_; }
  Slices take_request() override { return std::move(request_); }
  std::optional<Seconds> time_left() const override { return time_left_; }
  void reply(Slices message) override { end(std::move(message), nullptr); }
  void fail(const Error& error) override;
  void on_gone(std::function<void()> gone) override;

  void go();  // the client has gone
  bool has_ended() EXCLUDES(mutex_);
  bool wait(Seconds at_most = Seconds{60}) EXCLUDES(mutex_);  // for the end; false: it has not come
  // What was answered, or throws what it failed with; InternalError: nothing.
  std::string answer() EXCLUDES(mutex_);

 private:
  void end(Slices message, std::exception_ptr error) EXCLUDES(mutex_);

  const std::string path_;
  Slices request_;
  const std::optional<Seconds> time_left_;
  Mutex mutex_;
  CondVar ended_;
  bool has_ended_ GUARDED_BY(mutex_) = false;
  Slices reply_ GUARDED_BY(mutex_);
  std::exception_ptr error_ GUARDED_BY(mutex_);
  bool has_gone_ GUARDED_BY(mutex_) = false;
  std::function<void()> gone_ GUARDED_BY(mutex_);
};

// Makes calls of MasterService in a client's words.
class WireClient {
 public:
  using Feeding = std::vector<std::pair<std::string, Tensor>>;

  explicit WireClient(MasterService& service) : service_(service) {}

  std::shared_ptr<FakeWireCall> start(const std::string& method, const google::protobuf::MessageLite& request,
                                      std::optional<Seconds> time_left = {});
  template <typename Response>
  Response call(const std::string& method, const google::protobuf::MessageLite& request) {
    return parsed<Response>(finished(start(method, request)));
  }
  template <typename Response>
  static Response parsed(const std::string& bytes) {
    Response response;
    if (!response.ParseFromString(bytes)) throw InternalError("the answer cannot be parsed");
    return response;
  }

  std::string create(const proto::GraphDef& graph, const proto::ConfigProto& config = {});
  int64_t extend(const std::string& session, const proto::GraphDef& graph, int64_t version);
  static proto::master::RunStepRequest run_request(const std::string& session, const std::vector<std::string>& fetches,
                                                   const std::vector<std::string>& targets, const Feeding& feeds = {});
  std::vector<Tensor> run(const std::string& session, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {}, const Feeding& feeds = {});
  std::vector<Tensor> run(const proto::master::RunStepRequest& request);
  void close(const std::string& session);
  void reset(const std::vector<std::string>& containers = {});

  // How it waits for a call; in real time unless a test says otherwise.
  std::function<bool(FakeWireCall&)> wait = [](FakeWireCall& call) { return call.wait(); };

 private:
  std::string finished(const std::shared_ptr<FakeWireCall>& call);

  MasterService& service_;
};

// What TensorFlow's client sends for `v = tf.Variable([1.5, 1.5])` and a placeholder that is assigned to it.
proto::GraphDef variable_graph(const std::string& device = "");

}  // namespace longhaul
