#include "longhaul/cluster/simulation/simulated_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/cluster/simulation/network_router.h"

namespace longhaul {

SimulatedNetwork::SimulatedNetwork() : SimulatedNetwork(Options{}) {}

SimulatedNetwork::SimulatedNetwork(Options options) : router_(std::make_unique<NetworkRouter>(options)) {}

SimulatedNetwork::~SimulatedNetwork() {
  for (const auto& process : router_->processes()) process->stop("the simulation has ended");
  clock().drop_events();
}

SimulatedClock& SimulatedNetwork::clock() {
  return router_->clock();
}

std::shared_ptr<Transport> SimulatedNetwork::start(const std::string& task) {
  if (is_alive(task)) throw InvalidArgumentError(fmt::format("task {} is alive: kill() it first", task));
  const auto process = std::make_shared<SimulatedProcess>(task, *router_);
  router_->add(process);
  return process;
}

void SimulatedNetwork::kill(const std::string& task) {
  router_->kill(task);
}

bool SimulatedNetwork::is_alive(const std::string& task) const {
  return router_->living(task) != nullptr;
}

void SimulatedNetwork::cut(const std::string& from, const std::string& to) {
  router_->cut(from, to);
}

void SimulatedNetwork::mend(const std::string& from, const std::string& to) {
  router_->mend(from, to);
}

void SimulatedNetwork::plan(const NetworkFault& fault) {
  router_->plan(fault);
}

size_t SimulatedNetwork::faults_to_come() const {
  return router_->faults_to_come();
}

void SimulatedNetwork::on_killed(std::function<void(const std::string& task)> killed) {
  router_->tell(std::move(killed), {});
}

void SimulatedNetwork::on_restart(std::function<void(const std::string& task)> restart) {
  router_->tell({}, std::move(restart));
}

std::vector<SimulatedNetwork::Sent> SimulatedNetwork::sent() const {
  return router_->sent();
}

size_t SimulatedNetwork::calls(const std::string& from, const std::string& to) const {
  const std::vector<Sent> all = sent();
  return static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [&](const Sent& sent) { return !sent.is_reply && sent.from == from && sent.to == to; }));
}

size_t SimulatedNetwork::waiting() const {
  return router_->waiting();
}

}  // namespace longhaul
