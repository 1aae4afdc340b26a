#pragma once

#include <memory>

#include "longhaul/runtime/plan/instruction.h"

namespace longhaul {

// `_Send`, `_SendControl`, `_Recv`, `_RecvControl` (graph/builtin/transfer_ops.cc).
bool is_exchange(const Operation& op);

// `input`: the slot of what is sent; -1: none. `to`: where what is received goes.
std::unique_ptr<Instruction> make_exchange_instruction(const Operation& op, int input, ValuePlace to, int first_output);

}  // namespace longhaul
