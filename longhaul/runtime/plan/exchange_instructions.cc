#include "longhaul/runtime/plan/exchange_instructions.h"

#include <fmt/format.h>

#include "longhaul/session/part_exchange.h"

namespace longhaul {
namespace {

// A control edge has none.
int64_t slot_of(const Operation& op) {
  const int64_t* slot = op.find_attr<int64_t>("slot");
  return slot == nullptr ? 0 : *slot;
}

// What the two directions share: the other task, and the place in a message.
class ExchangeInstruction : public Instruction {
 public:
  ExchangeInstruction(const Operation& op, int first_output)
      : Instruction(op, first_output), bundle_(op.attr<int64_t>("bundle")), slot_(slot_of(op)) {}

 protected:
  PartExchange& exchange_of(const Frame& frame) const {
    if (frame.exchange != nullptr) return *frame.exchange;
    throw FailedPreconditionError(fmt::format(
        "{} ({}) exchanges a value with {}, but this run has no other parts: it must be begun by the session "
        "that has divided it",
        op().name(), op().type(), op().attr<std::string>("peer")));
  }
  int64_t bundle() const { return bundle_; }
  int64_t slot() const { return slot_; }

 private:
  const int64_t bundle_, slot_;
};

class SendInstruction : public ExchangeInstruction {
 public:
  SendInstruction(const Operation& op, int input, int first_output)
      : ExchangeInstruction(op, first_output), input_(input) {}
  void run(Frame& frame, SessionState&) const override {
    PartExchange& exchange = exchange_of(frame);
    exchange.send(bundle(), slot(), input_ < 0 ? Tensor() : value(frame).to_host());
  }

 private:
  const Value& value(const Frame& frame) const { return frame.slots[static_cast<size_t>(input_)]; }

  const int input_;
};

class ReceiveInstruction : public ExchangeInstruction {
 public:
  ReceiveInstruction(const Operation& op, ValuePlace to, int first_output)
      : ExchangeInstruction(op, first_output), to_(to) {}
  void run(Frame& frame, SessionState&) const override {
    const Tensor value = exchange_of(frame).receive(bundle(), slot(), frame.limits);
    if (op().num_outputs() == 0) return;
    check(value);
    frame.slots[static_cast<size_t>(first_output())] = Value::placed(to_, value);
  }

 private:
  using Instruction::check;
  // It comes from outside.
  void check(const Tensor& value) const {
    const Output wanted = op().output();
    if (value.defined() && value.dtype() == wanted.dtype() && value.shape().compatible_with(wanted.shape())) return;
    throw InternalError(
        fmt::format("{} ({}) was sent {} by {}, but takes {}{}", op().name(), op().type(),
                    value.defined() ? std::string(dtype_name(value.dtype())) + value.shape().to_string() : "no value",
                    op().attr<std::string>("peer"), dtype_name(wanted.dtype()), wanted.shape().to_string()));
  }

  const ValuePlace to_;
};

}  // namespace

bool is_exchange(const Operation& op) {
  return op.type() == "_Send" || op.type() == "_SendControl" || op.type() == "_Recv" || op.type() == "_RecvControl";
}

std::unique_ptr<Instruction> make_exchange_instruction(const Operation& op, int input, ValuePlace to,
                                                       int first_output) {
  if (op.type() == "_Send" || op.type() == "_SendControl") {
    return std::make_unique<SendInstruction>(op, input, first_output);
  }
  return std::make_unique<ReceiveInstruction>(op, to, first_output);
}

}  // namespace longhaul
