#include "longhaul/grpc/transport/grpc_log.h"

#include <grpc/support/log.h>

#include <mutex>
#include <string_view>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

thread_local int quiet_depth = 0;

LogLevel level_of(gpr_log_severity severity) {
  if (quiet_depth > 0) return LogLevel::kDebug;
  return severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo;
}

void pass_on(gpr_log_func_args* args) {
  std::string_view file = args->file;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  log_message(level_of(args->severity), fmt::format("gRPC: {} ({}:{})", args->message, file, args->line));
}

}  // namespace

void take_grpc_log() {
  static std::once_flag once;
  std::call_once(once, [] { gpr_set_log_function(pass_on); });
}

QuietGrpc::QuietGrpc() {
  ++quiet_depth;
}

QuietGrpc::~QuietGrpc() {
  --quiet_depth;
}

}  // namespace longhaul
