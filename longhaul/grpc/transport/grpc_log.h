#pragma once

namespace longhaul {

// From now on what gRPC says goes to our log, for the whole process: its errors as warnings, and what else
// GRPC_VERBOSITY asks for as information. Later calls do nothing.
void take_grpc_log();

// As long as it lives, what gRPC says on this thread is for debugging only: whoever has it reports the error himself.
class QuietGrpc {
 public:
  QuietGrpc();
  ~QuietGrpc();
  QuietGrpc(const QuietGrpc&) = delete;
  QuietGrpc& operator=(const QuietGrpc&) = delete;
};

}  // namespace longhaul
