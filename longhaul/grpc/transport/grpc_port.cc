#include "longhaul/grpc/transport/grpc_port.h"

#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "longhaul/cluster/transport/open_calls.h"
#include "longhaul/grpc/transport/byte_buffers.h"
#include "longhaul/grpc/transport/callback_scope.h"
#include "longhaul/grpc/transport/connection_door.h"
#include "longhaul/grpc/transport/credentials.h"
#include "longhaul/grpc/transport/grpc_log.h"
#include "longhaul/grpc/transport/line_settings.h"

namespace longhaul {
namespace {

class ArrivedCall;

// A session has two or three that wait for as long as it lives; a part of a step one.
constexpr size_t kMostOpen = 10'000;

std::string cut_for_headers(const std::string& text) {
  constexpr size_t kMost = 2000;
  if (text.size() <= kMost) return text;
  return fmt::format("{}... ({} bytes in all)", text.substr(0, kMost), text.size());
}

grpc::Status status_of(const Error& error) {
  return grpc::Status(static_cast<grpc::StatusCode>(error.code()), cut_for_headers(error.what()));
}

}  // namespace

struct GrpcPort::State {
  explicit State(Options the_options) : options(std::move(the_options)) {}

  const Options options;
  OpenCalls<ArrivedCall> open;
};

namespace {

// A call as gRPC has it. It keeps itself until gRPC is done with it.
class ArrivedCall final : public grpc::ServerGenericBidiReactor, public std::enable_shared_from_this<ArrivedCall> {
 public:
  ArrivedCall(const GrpcPort::Options& options, OpenCalls<ArrivedCall>& open,
              const grpc::GenericCallbackServerContext& context)
      : options_(options), open_(open), path_(context.method()), deadline_(context.deadline()) {}

  void begin(const grpc::GenericCallbackServerContext& context) {
    self_ = shared_from_this();
    number_ = open_.add(self_);
    if (open_.size() > kMostOpen) {
      return finish(status_of(ResourceExhaustedError(
          fmt::format("{}: {} calls wait for their answers here already, which are the most", path_, kMostOpen))));
    }
    const std::optional<grpc::Status> refused = refusal_of(context);
    if (refused) return finish(*refused);
    StartRead(&request_);
  }

  const std::string& path() const { return path_; }
  uint64_t most_bytes() const { return most_frame_bytes(options_.frames); }
  std::optional<Seconds> time_left() const {
    if (deadline_ == std::chrono::system_clock::time_point::max()) return std::nullopt;
    return deadline_ - std::chrono::system_clock::now();
  }
  Slices take_request() {
    Slices slices = to_slices(request_);
    request_.Clear();
    return slices;
  }

  bool has_ended() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return has_ended_;
  }
  void finish(const grpc::Status& status) EXCLUDES(mutex_) {
    if (is_first_end()) Finish(status);
  }
  void reply(const Slices& message) EXCLUDES(mutex_) {
    if (!is_first_end()) return;
    reply_ = to_byte_buffer(message);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void on_gone(std::function<void()> gone) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (!is_gone_) {
        if (!has_ended_) gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }

  void OnReadDone(bool ok) override;
  void OnCancel() override EXCLUDES(mutex_) {
    const CallbackScope scope;
    std::function<void()> gone;
    {
      MutexLock lock(mutex_);
      if (has_ended_) return;
      is_gone_ = true;
      gone.swap(gone_);
    }
    finish(grpc::Status::CANCELLED);
    if (gone) gone();
  }
  void OnDone() override {
    const std::shared_ptr<ArrivedCall> self = std::move(self_);
    reply_.Clear();
  }

 private:
  bool is_first_end() EXCLUDES(mutex_) {
    std::function<void()> gone;  // destroyed without the lock
    {
      MutexLock lock(mutex_);
      if (has_ended_) return false;
      has_ended_ = true;
      gone.swap(gone_);
    }
    open_.remove(number_);
    return true;
  }

  std::optional<grpc::Status> refusal_of(const grpc::GenericCallbackServerContext& context) const;

  const GrpcPort::Options& options_;
  OpenCalls<ArrivedCall>& open_;
  const std::string path_;
  const std::chrono::system_clock::time_point deadline_;
  uint64_t number_ = 0;
  std::shared_ptr<ArrivedCall> self_;
  grpc::ByteBuffer request_, reply_;
  Mutex mutex_;
  bool has_ended_ GUARDED_BY(mutex_) = false;  // gRPC has been told how
  bool is_gone_ GUARDED_BY(mutex_) = false;
  std::function<void()> gone_ GUARDED_BY(mutex_);
};

// What a handler has of the call.
class PortCall final : public WireCall {
 public:
  explicit PortCall(std::shared_ptr<ArrivedCall> call) : call_(std::move(call)) {}
  ~PortCall() override {
    if (!call_->has_ended()) fail(InternalError(fmt::format("{} was let go without a reply", path())));
  }

  const std::string& path() const override { return call_->path(); }
  Slices take_request() override { return call_->take_request(); }
  std::optional<Seconds> time_left() const override { return call_->time_left(); }
  void reply(Slices message) override {
    const uint64_t bytes = total_bytes(message), most = call_->most_bytes();
    if (bytes <= most) return call_->reply(message);
    fail(ResourceExhaustedError(
        fmt::format("{}: an answer of {} bytes is above the limit, {}: fetch less in one run", path(), bytes, most)));
  }
  void fail(const Error& error) override { call_->finish(status_of(error)); }
  void on_gone(std::function<void()> gone) override { call_->on_gone(std::move(gone)); }

 private:
  const std::shared_ptr<ArrivedCall> call_;
};

void ArrivedCall::OnReadDone(bool ok) {
  const CallbackScope scope;
  if (!ok) {
    return finish(status_of(ResourceExhaustedError(
        fmt::format("{}: no message came, or one of more than {} bytes", path_, most_frame_bytes(options_.frames)))));
  }
  const auto call = std::make_shared<PortCall>(shared_from_this());
  try {
    options_.handler(call);
  } catch (const Error& error) {
    call->fail(error);
  } catch (const std::exception& error) {
    call->fail(UnknownError(message_of(std::current_exception())));
  }
}

std::optional<grpc::Status> ArrivedCall::refusal_of(const grpc::GenericCallbackServerContext& context) const {
  if (!options_.accepts) return std::nullopt;
  const auto found = context.client_metadata().find(kTokenKey);
  try {
    if (found == context.client_metadata().end()) {
      throw UnauthenticatedError("the call has no token: give the caller this task's token_file, too");
    }
    if (options_.accepts({found->second.data(), found->second.size()})) return std::nullopt;
    throw UnauthenticatedError("the call's token is not this task's: give both the same token_file");
  } catch (const Error& error) {
    return status_of(error);
  } catch (const std::exception& error) {
    return status_of(UnknownError(error.what()));
  }
}

}  // namespace

// gRPC's server, and what it asks for the reactor of each call.
class GrpcPort::Listener final : public grpc::CallbackGenericService {
 public:
  explicit Listener(std::shared_ptr<State> state)
      : state_(std::move(state)), door_(std::in_place, state_->options.address, state_->options.limits.lost_line) {
    const QuietGrpc quiet;
    const Options& options = state_->options;
    grpc::ServerBuilder builder;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        server_credentials(options.security, options.read_files_again));
    builder.RegisterCallbackGenericService(this);
    for (const LineSetting& setting : server_settings(options.limits, options.frames)) {
      builder.AddChannelArgument(setting.name, setting.value);
    }
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) throw UnavailableError(fmt::format("cannot serve on {}: gRPC refuses it", options.address));
    door_->open([this](int listener, int connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters taken;
      taken.listener_fd = listener;
      taken.fd = connection;
      acceptor_->HandleNewConnection(&taken);
    });
  }
  ~Listener() override {
    constexpr auto kToSendReplies = std::chrono::milliseconds(200);
    door_.reset();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kToSendReplies);
  }

  int port() const { return door_->port(); }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const CallbackScope scope;
    const auto call = std::make_shared<ArrivedCall>(state_->options, state_->open, *context);
    call->begin(*context);
    return call.get();
  }

 private:
  const std::shared_ptr<State> state_;
  std::optional<ConnectionDoor> door_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

GrpcPort::GrpcPort(Options options)
    : state_(std::make_shared<State>(std::move(options))), listener_(std::make_unique<Listener>(state_)) {}

int GrpcPort::port() const {
  return listener_->port();
}

GrpcPort::~GrpcPort() {
  end_all(UnavailableError("the task has closed its port"));
}

void GrpcPort::end_all(const Error& error) {
  for (const auto& call : state_->open.all()) call->finish(status_of(error));
}

}  // namespace longhaul
