#include "longhaul/grpc/transport/grpc_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/base/thread.h"
#include "longhaul/cluster/security/renewal_watch.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/credentials/token_file.h"
#include "longhaul/grpc/transport/callback_scope.h"
#include "longhaul/grpc/transport/credentials.h"
#include "longhaul/grpc/transport/grpc_log.h"
#include "longhaul/grpc/transport/grpc_port.h"
#include "longhaul/grpc/transport/line_settings.h"
#include "longhaul/grpc/transport/peer_line.h"
#include "longhaul/grpc/transport/run_later.h"
#include "longhaul/io/process/process_room.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {
namespace {

std::shared_ptr<TokenFile> token_of(const GrpcTransportOptions& options) {
  const std::string& file = options.security.token_file;
  return file.empty() ? nullptr : std::make_shared<TokenFile>(file, *options.clock);
}

std::shared_ptr<RenewalWatch> watched(const GrpcTransportOptions& options) {
  return has_tls(options.security) ? std::make_shared<RenewalWatch>(options.security, *options.clock) : nullptr;
}

std::string known_tasks(const std::map<std::string, std::string>& addresses) {
  std::vector<std::string> tasks;
  for (const auto& [task, address] : addresses) tasks.push_back(task);
  return tasks.empty() ? "none" : first_names(tasks);
}

Slices checked_frame(const TaskFrame& frame, const std::string& what, const FrameLimits& limits) {
  Slices slices = write_frame(frame);
  const uint64_t bytes = total_bytes(slices), most = most_frame_bytes(limits);
  if (bytes <= most) return slices;
  throw ResourceExhaustedError(fmt::format(
      "{}: a frame of {} bytes is above the limit, {} (FrameLimits::most_bytes): send it in parts", what, bytes, most));
}

Slices frame_of_call(proto::CallHeader header, Message message, const FrameLimits& limits) {
  const std::string what = fmt::format("{} to {}", header.method(), header.to_task());
  return checked_frame({.call = std::move(header), .message = std::move(message)}, what, limits);
}

// gRPC aborts without descriptors, and its end may hang if it has not got all of its threads. These are for all
// transports of the process, with some for the first parts of steps; the descriptors are for a port and some peers.
void check_room_of_grpc(const GrpcTransportOptions& options) {
  constexpr ProcessRoom kOfFirst{.descriptors = 32, .threads = 32}, kOfEach{.descriptors = 32};
  static std::once_flag first;
  const std::string what =
      fmt::format("{} {}", options.listen.empty() ? "a client of a cluster," : "the server of", options.task);
  std::call_once(first, [&] { check_room(kOfFirst, what); });
  check_room(kOfEach, what);
}

void check_process(pid_t owner, const std::string& task, const std::string& method) {
  if (::getpid() == owner) return;
  throw FailedPreconditionError(fmt::format(
      "{}: the transport of {} belongs to the process {}, of which this is a forked child: make one here, or "
      "fork before it is made",
      method, task, owner));
}

TaskFrame frame_of_reply(CallReply reply) {
  TaskFrame frame;
  frame.reply.emplace().set_incarnation(reply.incarnation);
  if (reply.error != nullptr) *frame.reply->mutable_error() = to_error_body(reply.error);
  frame.message = std::move(reply.message);
  return frame;
}

// A reply that cannot be sent becomes an error, which can.
void send_reply(WireCall& call, CallReply reply, const FrameLimits& limits) {
  const uint64_t incarnation = reply.incarnation;
  try {
    call.reply(checked_frame(frame_of_reply(std::move(reply)), "the reply to " + call.path(), limits));
  } catch (const std::exception&) {
    call.reply(write_frame(frame_of_reply({.error = std::current_exception(), .incarnation = incarnation})));
  }
}

}  // namespace

std::shared_ptr<GrpcTransport> GrpcTransport::create(GrpcTransportOptions options) {
  check_room_of_grpc(options);
  take_grpc_log();
  check_security(options.security);
  if (!options.listen.empty()) check_listen_address(options.listen, options.security, options.task);
  if (options.incarnation == 0) options.incarnation = new_incarnation();
  const std::shared_ptr<GrpcTransport> transport(new GrpcTransport(std::move(options)));
  if (!transport->options_.listen.empty()) transport->listen();
  return transport;
}

GrpcTransport::GrpcTransport(GrpcTransportOptions options)
    : Transport(options.task, options.incarnation, *options.clock),
      options_(std::move(options)),
      process_(::getpid()),
      token_(token_of(options_)),
      credentials_(caller_credentials(options_.security, options_.read_files_again)),
      files_(watched(options_)),
      calls_(std::make_shared<CallsInGrpc>()),
      door_(std::make_shared<CallbackDoor>()),
      addresses_(options_.addresses) {}

void GrpcTransport::listen() {
  GrpcPort::Options port{.address = options_.listen,
                         .security = options_.security,
                         .read_files_again = options_.read_files_again,
                         .limits = options_.limits,
                         .frames = options_.frames};
  if (token_ != nullptr) port.accepts = [token = token_](std::string_view given) { return token->accepts(given); };
  port.handler = [this, door = door_](std::shared_ptr<WireCall> call) {
    if (!door->pass([&] { take(call); })) throw UnavailableError("the task's transport has ended");
  };
  port_ = std::make_unique<GrpcPort>(std::move(port));
}

GrpcTransport::~GrpcTransport() {
  constexpr Seconds kLongest{2};
  if (::getpid() != process_) {  // a child's: gRPC's threads, which would end it, are the parent's
    static_cast<void>(port_.release());
    return;
  }
  stop("its transport was destroyed");
  door_->shut();
  if (CallbackScope::is_inside()) {
    if (port_ == nullptr) return;
    NamedThread("lh-grpc-end", [port = std::shared_ptr<GrpcPort>(std::move(port_))] {}).detach();
    return;
  }
  port_.reset();
  if (!calls_->wait_until_none(kLongest)) log_warning("gRPC has not ended all calls of {} in time", task());
}

std::string GrpcTransport::address_of(const std::string& task) const {
  if (is_address(task)) return task;
  MutexLock lock(mutex_);
  const auto found = addresses_.find(task);
  return found == addresses_.end() ? "" : found->second;
}

int GrpcTransport::port() const {
  return port_ == nullptr ? 0 : port_->port();
}

void GrpcTransport::set_addresses(std::map<std::string, std::string> addresses) {
  MutexLock lock(mutex_);
  for (auto& [task, address] : addresses) addresses_[task] = std::move(address);
}

void GrpcTransport::serve_wire(const std::string& prefix, WireHandler handler) {
  MutexLock lock(mutex_);
  wire_handlers_[prefix] = std::move(handler);
}

void GrpcTransport::begin() {
  MutexLock lock(mutex_);
  has_begun_ = true;
}

void GrpcTransport::send(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message) {
  try {
    check_process(process_, task(), header.method());
    if (header.to_task() == task()) {
      return start_local_call(call, std::move(header), std::move(message), own_calls(), calls_, clock());
    }
    const std::shared_ptr<PeerLine> line = line_to(call->peer().task, header.method());
    PeerLine::Sent sent{.path = kTaskPath + header.method(), .token = token_ == nullptr ? "" : token_->token()};
    if (header.time_left_micros() > 0) {
      sent.time_left = std::chrono::duration<double, std::micro>(static_cast<double>(header.time_left_micros()));
    }
    sent.frame = frame_of_call(std::move(header), std::move(message), options_.frames);
    line->start(call, sent);
  } catch (...) {
    call->give_up(std::current_exception());
  }
}

// A child has none of gRPC's threads: there a call is refused at once.
void GrpcTransport::wake_after(Seconds time, std::function<void()> wake) {
  if (::getpid() != process_) return wake();
  run_later(time, [door = door_, wake = std::move(wake)] { door->pass(wake); });
}

LocalDispatch GrpcTransport::own_calls() {
  return [this, door = door_, own = incarnation()](const proto::CallHeader& header, Message request,
                                                   IncomingCall::Respond respond) {
    std::shared_ptr<IncomingCall> incoming;
    const auto handle = [&] {
      check_begun(header.method());
      incoming = server().dispatch(header, std::move(request), respond);
    };
    try {
      if (!door->pass(handle)) throw UnavailableError("the task's transport has ended");
    } catch (const Error&) {
      respond({.error = std::current_exception(), .incarnation = own});
    }
    return incoming;
  };
}

std::shared_ptr<PeerLine> GrpcTransport::line_to(const std::string& task, const std::string& method) {
  const std::string address = address_of(task);
  std::shared_ptr<PeerLine> old;  // destroyed without the lock
  MutexLock lock(mutex_);
  if (address.empty()) {
    throw InvalidArgumentError(
        fmt::format("{}: task {} is not in the cluster of this process, which has these tasks: {}. "
                    "Compare the cluster specs of all tasks",
                    method, task, known_tasks(addresses_)));
  }
  std::shared_ptr<PeerLine>& line = lines_[task];
  if (line == nullptr || line->address() != address) {
    check_token_may_go_to(address, options_.security);
    old = std::make_shared<PeerLine>(PeerLine::Options{.address = address,
                                                       .credentials = credentials_,
                                                       .limits = options_.limits,
                                                       .frames = options_.frames,
                                                       .clock = options_.clock,
                                                       .calls = calls_,
                                                       .files = files_});
    old.swap(line);
  }
  return line;
}

void GrpcTransport::check_begun(const std::string& path) const {
  MutexLock lock(mutex_);
  if (!why_stopped_.empty()) {
    throw UnavailableError(fmt::format("task {} does not answer {}: it was stopped: {}", task(), path, why_stopped_));
  }
  if (has_begun_) return;
  throw UnavailableError(
      fmt::format("task {} does not answer {} yet: its server was made, but not started", task(), path));
}

void GrpcTransport::take(const std::shared_ptr<WireCall>& call) {
  if (call->path().rfind(kTaskPath, 0) == 0) return take_task_call(call);
  check_begun(call->path());
  handler_of(call->path())(call);
}

WireHandler GrpcTransport::handler_of(const std::string& path) const {
  MutexLock lock(mutex_);
  for (const auto& [prefix, handler] : wire_handlers_) {
    if (path.rfind(prefix, 0) == 0) return handler;
  }
  throw UnimplementedError(fmt::format("task {} does not know the method {}", task(), path));
}

void GrpcTransport::take_task_call(const std::shared_ptr<WireCall>& call) {
  const auto respond = [call, limits = options_.frames](CallReply reply) {
    send_reply(*call, std::move(reply), limits);
  };
  TaskFrame frame;
  try {
    check_begun(call->path());
    frame = read_frame(call->take_request(), fmt::format("task {}: {}", task(), call->path()), options_.frames);
    if (!frame.call || kTaskPath + frame.call->method() != call->path()) {
      throw InvalidArgumentError(fmt::format("task {}: {} came with a frame of something else", task(), call->path()));
    }
  } catch (const DataLossError& error) {  // not by the caller: to be repeated, as after a break of the connection
    return call->fail(error);
  } catch (const std::exception&) {
    return respond({.error = std::current_exception(), .incarnation = incarnation()});
  }
  const auto incoming = server().dispatch(*frame.call, std::move(frame.message), respond);
  if (incoming == nullptr) return;
  call->on_gone([weak = std::weak_ptr<IncomingCall>(incoming)] {
    if (const auto kept = weak.lock()) kept->end_caller();
  });
}

void GrpcTransport::end_others(const std::string& why) {
  {
    MutexLock lock(mutex_);
    why_stopped_ = why.empty() ? "no reason was given" : why;
  }
  if (port_ != nullptr) port_->end_all(UnavailableError(fmt::format("task {} was stopped: {}", task(), why)));
}

}  // namespace longhaul
