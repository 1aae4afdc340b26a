#include "longhaul/grpc/transport/peer_line.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <iterator>

#include "longhaul/base/log.h"
#include "longhaul/base/thread.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/grpc/transport/byte_buffers.h"
#include "longhaul/grpc/transport/callback_scope.h"
#include "longhaul/grpc/transport/credentials.h"
#include "longhaul/grpc/transport/line_settings.h"
#include "longhaul/grpc/transport/run_later.h"

namespace longhaul {

namespace {

// A channel that ends on a thread of its own if its last owner is a callback of gRPC: its end waits for those threads,
// and gRPC does not notice if one of them would wait for itself.
class KeptChannel {
 public:
  explicit KeptChannel(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}
  ~KeptChannel() {
    if (!CallbackScope::is_inside()) return;
    auto* const last = new std::shared_ptr<grpc::Channel>(std::move(channel_));
    try {
      NamedThread("lh-grpc-end", [last] { delete last; }).detach();
    } catch (const std::exception& e) {  // then it stays for as long as the process
      log_warning("a connection of gRPC is kept: no thread can be made to end it: {}", e.what());
    }
  }
  KeptChannel(const KeptChannel&) = delete;
  KeptChannel& operator=(const KeptChannel&) = delete;

  const std::shared_ptr<grpc::Channel>& get() const { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

// While it lives, a call is one that gRPC has.
class CountedCall {
 public:
  explicit CountedCall(std::shared_ptr<CallsInGrpc> calls) : calls_(std::move(calls)) { calls_->add(); }
  ~CountedCall() { calls_->remove(); }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  const std::shared_ptr<CallsInGrpc> calls_;
};

// Looks at the calls of a line that may still wait for a connection, at all of them at once: an alarm for each call
// would wake gRPC's threads twice for a call that is answered in 50 us.
class ConnectWatch : public std::enable_shared_from_this<ConnectWatch> {
 public:
  using Look = std::function<bool(Seconds now)>;  // false: it needs no further look

  explicit ConnectWatch(Seconds pause) : pause_(pause) {}

  void add(Look look) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      looks_.push_back(std::move(look));
      if (std::exchange(is_running_, true)) return;
    }
    look_later();
  }

 private:
  void look_later() {
    run_later(pause_, [self = shared_from_this()] { self->look(); });
  }

  void look() EXCLUDES(mutex_) {
    std::vector<Look> looks;
    {
      MutexLock lock(mutex_);
      looks.swap(looks_);
    }
    const Seconds now = Clock::real().now();
    std::erase_if(looks, [&](const Look& look) { return !look(now); });
    {
      MutexLock lock(mutex_);
      std::move(looks.begin(), looks.end(), std::back_inserter(looks_));
      is_running_ = !looks_.empty();
      if (!is_running_) return;
    }
    look_later();
  }

  const Seconds pause_;
  Mutex mutex_;
  std::vector<Look> looks_ GUARDED_BY(mutex_);
  bool is_running_ GUARDED_BY(mutex_) = false;
};

// A call without a connection may wait for so much longer than its limit.
Seconds pause_between_looks(Seconds connect) {
  constexpr Seconds kLeast{0.01}, kMost{0.5};
  return std::clamp(connect / 20, kLeast, kMost);
}

}  // namespace

struct PeerLine::State {
  explicit State(Options the_options);

  const Options options;
  const KeptChannel channel;
  const std::shared_ptr<ConnectWatch> connects;
};

namespace {

// The port's brackets of IPv6 have no place in an URI's path.
std::string target_of(const std::string& address) {
  std::string target = "dns:///";
  for (const char c : address) target += c == '[' ? "%5B" : c == ']' ? "%5D" : std::string(1, c);
  return target;
}

std::shared_ptr<grpc::Channel> make_channel(const PeerLine::Options& options) {
  grpc::ChannelArguments arguments;
  for (const LineSetting& setting : caller_settings(options.limits, options.frames)) {
    arguments.SetInt(setting.name, setting.value);
  }
  return grpc::CreateCustomChannel(target_of(options.address), options.credentials, arguments);
}

// On the machine's clock, which gRPC uses.
gpr_timespec in(Seconds time) {
  constexpr Seconds kYear{365 * 24 * 3600.0};
  const auto micros = static_cast<int64_t>(std::clamp(time, Seconds{0}, kYear).count() * 1e6);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(micros, GPR_TIMESPAN));
}

// Asks a channel why it does not connect: a call that does not wait for the connection fails with the reason.
class WhyCall final : public grpc::ClientUnaryReactor {
 public:
  using Answer = std::function<void(const std::string& why)>;  // empty: it does not know

  WhyCall(std::shared_ptr<CallsInGrpc> calls, Answer answer) : counted_(std::move(calls)), answer_(std::move(answer)) {}

  // Deletes itself.
  void start(grpc::GenericStub& stub) {
    context_.set_deadline(in(Seconds{0.1}));
    stub.PrepareUnaryCall(&context_, std::string(kTaskPath) + "Why", {}, &request_, &reply_, this);
    StartCall();
  }

  void OnDone(const grpc::Status& status) override {
    const CallbackScope scope;
    answer_(status.error_code() == grpc::StatusCode::UNAVAILABLE ? status.error_message() : "");
    delete this;
  }

 private:
  const CountedCall counted_;
  const Answer answer_;  // has the line, which goes after the context
  grpc::ClientContext context_;
  const grpc::ByteBuffer request_ = to_byte_buffer({});  // gRPC aborts when it shall send one without a buffer
  grpc::ByteBuffer reply_;
};

std::exception_ptr refusal(const OutgoingCall::Peer& peer, const grpc::Status& status) {
  try {
    throw_error(static_cast<Code>(status.error_code()),
                fmt::format("{} was refused by {}: {}", peer.method, task_text(peer.task, peer.address),
                            status.error_message()));
  } catch (...) {
    return std::current_exception();
  }
}

// Statuses by which the peer, or gRPC on its side, refuses a call that it has not handled.
bool is_refusal(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::UNAUTHENTICATED: return true;
    default: return false;
  }
}

// gRPC writes "recvmsg:Connection reset by peer".
std::string with_space_after_colon(std::string why) {
  constexpr std::string_view kRead = "recvmsg:";
  if (!why.starts_with(kRead) || why.size() == kRead.size() || why[kRead.size()] == ' ') return why;
  return fmt::format("{} {}", kRead, why.substr(kRead.size()));
}

// A call as gRPC has it. It keeps itself, and its line, until gRPC is done with it. The line goes after all else that
// has the channel, and the count after the line.
class CallOnLine final : public grpc::ClientUnaryReactor, public std::enable_shared_from_this<CallOnLine> {
 public:
  CallOnLine(std::shared_ptr<const PeerLine::Options> line, const std::shared_ptr<grpc::Channel>& channel,
             std::shared_ptr<ConnectWatch> connects, std::shared_ptr<OutgoingCall> call, const Slices& frame)
      : counted_(line->calls),
        options_(std::move(line)),
        channel_(channel),
        connects_(std::move(connects)),
        stub_(channel_),
        call_(std::move(call)),
        request_(to_byte_buffer(frame)) {}

  void start(const PeerLine::Sent& sent) {
    const std::shared_ptr<CallOnLine> self = self_ = shared_from_this();
    context_.set_wait_for_ready(true);
    if (!sent.token.empty()) context_.AddMetadata(kTokenKey, sent.token);
    if (sent.time_left) context_.set_deadline(in(*sent.time_left));
    call_->on_give_up([weak = weak_from_this()] {
      if (const std::shared_ptr<CallOnLine> call = weak.lock()) call->context_.TryCancel();
    });
    stub_.PrepareUnaryCall(&context_, sent.path, {}, &request_, &reply_, this);
    StartCall();
    if (call_->has_ended()) context_.TryCancel();  // before it could be told
    if (!is_sent()) watch_connection();
  }

  void OnDone(const grpc::Status& status) override {
    const CallbackScope scope;
    const std::shared_ptr<CallOnLine> self = std::move(self_);
    request_.Clear();
    if (!call_->has_ended()) end(status);
  }

 private:
  // Until a connection has it, gRPC names the target in place of the peer.
  bool is_sent() const {
    const std::string peer = context_.peer();
    return peer.rfind("ipv4:", 0) == 0 || peer.rfind("ipv6:", 0) == 0;
  }

  void watch_connection() {
    const Seconds due = Clock::real().now() + call_->peer().connect.value_or(options_->limits.connect);
    connects_->add([weak = weak_from_this(), due](Seconds now) {
      const std::shared_ptr<CallOnLine> self = weak.lock();
      if (self == nullptr || self->is_sent() || self->call_->has_ended()) return false;
      if (now >= due) self->ask_why();
      return now < due;
    });
  }

  void ask_why() {
    if (is_sent() || call_->has_ended()) return;
    const auto why = new WhyCall(options_->calls,
                                 [self = shared_from_this()](const std::string& text) { self->give_up_unsent(text); });
    why->start(stub_);
  }

  void give_up_unsent(const std::string& why) {
    if (is_sent() || call_->has_ended()) return;
    call_->break_off(options_->clock->now(), with_problem_of_files(why));
    context_.TryCancel();
    // The next call shall not wait for a look-up of the name that was put off for minutes.
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
  }

  // What gRPC says of a handshake that fails names no file.
  std::string with_problem_of_files(const std::string& why) const {
    const std::string problem = options_->files == nullptr ? "" : options_->files->look();
    if (problem.empty() || why.empty()) return why + problem;
    return fmt::format("{}; {}", why, problem);
  }

  void end(const grpc::Status& status) {
    if (status.ok()) return take_reply();
    if (is_refusal(status.error_code())) {
      call_->end(CallReply{.error = refusal(call_->peer(), status)});
    } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      call_->give_up_late(options_->clock->now());
    } else if (is_sent()) {
      // UNAVAILABLE; UNKNOWN "Stream removed", which gRPC says of a peer that restarted; DATA_LOSS of a damaged call
      call_->connection_broke(with_space_after_colon(status.error_message()));
    } else {
      call_->break_off(options_->clock->now(), status.error_message());
    }
  }

  void take_reply() {
    TaskFrame frame;
    try {
      const std::string from = task_text(call_->peer().task, call_->peer().address);
      frame = read_frame(to_slices(reply_), from, options_->frames);
      reply_.Clear();
      if (!frame.reply)
        throw InvalidArgumentError(fmt::format("{}: answers {} with a call", from, call_->peer().method));
    } catch (const DataLossError& error) {
      call_->connection_broke(error.what());
      return;
    } catch (...) {
      call_->end(CallReply{.error = std::current_exception()});
      return;
    }
    call_->end(*frame.reply, std::move(frame.message));
  }

  const CountedCall counted_;
  const std::shared_ptr<const PeerLine::Options> options_;  // and with them the line
  const std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<ConnectWatch> connects_;
  grpc::GenericStub stub_;
  const std::shared_ptr<OutgoingCall> call_;
  std::shared_ptr<CallOnLine> self_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, reply_;
};

}  // namespace

PeerLine::State::State(Options the_options)
    : options(std::move(the_options)),
      channel(make_channel(options)),
      connects(std::make_shared<ConnectWatch>(pause_between_looks(options.limits.connect))) {}

PeerLine::PeerLine(Options options) : state_(std::make_shared<State>(std::move(options))) {}

PeerLine::~PeerLine() = default;

const std::string& PeerLine::address() const {
  return state_->options.address;
}

void PeerLine::start(std::shared_ptr<OutgoingCall> call, const Sent& sent) {
  const std::shared_ptr<const Options> options(state_, &state_->options);
  std::make_shared<CallOnLine>(options, state_->channel.get(), state_->connects, std::move(call), sent.frame)
      ->start(sent);
}

void CallsInGrpc::add() {
  MutexLock lock(mutex_);
  ++count_;
}

void CallsInGrpc::remove() {
  MutexLock lock(mutex_);
  --count_;
  changed_.notify_all();
}

bool CallsInGrpc::wait_until_none(Seconds most) {
  Clock& clock = Clock::real();  // gRPC's
  const Seconds end = clock.now() + most;
  MutexLock lock(mutex_);
  // wait: for gRPC's threads, which end cancelled calls at once
  while (count_ > 0 && clock.now() < end) clock.wait_until(changed_, mutex_, end);
  return count_ == 0;
}

}  // namespace longhaul
