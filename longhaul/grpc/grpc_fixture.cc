#include "longhaul/grpc/grpc_fixture.h"

#include <gtest/gtest.h>

#include <utility>

namespace longhaul {

void Happened::add() {
  MutexLock lock(mutex_);
  ++times_;
  changed_.notify_all();
}

int Happened::times() const {
  MutexLock lock(mutex_);
  return times_;
}

bool Happened::reaches(int times, Seconds most) {
  Clock& clock = Clock::real();
  const Seconds end = clock.now() + most;
  MutexLock lock(mutex_);
  while (times_ < times && clock.now() < end) clock.wait_until(changed_, mutex_, end);
  return times_ >= times;
}

OutgoingCall::Done ReplyLater::done() const {
  return [state = state_](CallReply reply) {
    {
      MutexLock lock(state->mutex);
      state->reply = std::move(reply);
    }
    state->come.add();
  };
}

CallReply ReplyLater::wait(Seconds most) const {
  EXPECT_TRUE(state_->come.reaches(1, most)) << "no reply has come";
  MutexLock lock(state_->mutex);
  return state_->reply;
}

GrpcTasks::~GrpcTasks() {
  for (const auto& [task, transport] : tasks_) transport->stop("the test has ended");
}

std::shared_ptr<GrpcTransport> GrpcTasks::start(const std::string& task) {
  const auto transport = prepare(task);
  transport->begin();
  return transport;
}

std::shared_ptr<GrpcTransport> GrpcTasks::prepare(const std::string& task) {
  GrpcTransportOptions options = common_;
  options.task = task;
  options.listen = "127.0.0.1:0";
  const auto transport = GrpcTransport::create(options);
  tasks_[task] = transport;
  set_address(task, transport->port());
  return transport;
}

void GrpcTasks::set_address(const std::string& task, int port) {
  addresses_[task] = "127.0.0.1:" + std::to_string(port);
  for (const auto& [name, transport] : tasks_) transport->set_addresses(addresses_);
}

GrpcPair::GrpcPair(GrpcTransportOptions common) : tasks(std::move(common)) {
  ps = tasks.start("/job:ps/replica:0/task:0");
  worker = tasks.start("/job:worker/replica:0/task:0");
  serve(*ps);
}

void GrpcPair::serve(Transport& transport) {
  transport.serve("Echo", [](std::shared_ptr<IncomingCall> call) { call->reply(call->take_request()); });
  transport.serve("Park", [state = state_](std::shared_ptr<IncomingCall> call) {
    call->on_gone([state] { state->gone.add(); });
    {
      MutexLock lock(state->mutex);
      state->parked.push_back(std::move(call));
    }
    state->come.add();
  });
}

CallRequest GrpcPair::request(const std::string& method, Message message) const {
  return {.task = ps->task(), .method = method, .message = std::move(message)};
}

Message GrpcPair::call(const std::string& method, WaitLimits limits, Message message) {
  if (limits.deadline.count() != 0) limits.deadline += Clock::real().now();
  return call_and_wait(*worker, request(method, std::move(message)), limits);
}

std::shared_ptr<OutgoingCall> GrpcPair::start(const std::string& method, const ReplyLater& reply) {
  return worker->start(request(method), reply.done());
}

std::vector<std::shared_ptr<IncomingCall>> GrpcPair::take_parked() {
  MutexLock lock(state_->mutex);
  return std::move(state_->parked);
}

}  // namespace longhaul
