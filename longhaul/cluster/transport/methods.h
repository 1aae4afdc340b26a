#pragma once

// The methods between tasks, with messages NAMERequest and NAMEReply (proto/cluster_service.proto).
namespace longhaul::methods {

inline constexpr char kGetStatus[] = "GetStatus";
inline constexpr char kWatch[] = "Watch";
inline constexpr char kWaitForChange[] = "WaitForChange";
inline constexpr char kWaitForStop[] = "WaitForStop";
inline constexpr char kEndTraining[] = "EndTraining";
inline constexpr char kRegisterGraph[] = "RegisterGraph";
inline constexpr char kDeregisterGraph[] = "DeregisterGraph";
inline constexpr char kRunPart[] = "RunPart";
inline constexpr char kDeliver[] = "Deliver";
inline constexpr char kCommit[] = "Commit";
inline constexpr char kAbort[] = "Abort";
inline constexpr char kCleanup[] = "Cleanup";
inline constexpr char kAsk[] = "Ask";
inline constexpr char kLookAtStep[] = "LookAtStep";
inline constexpr char kFreeze[] = "Freeze";
inline constexpr char kTake[] = "Take";
inline constexpr char kOpen[] = "Open";
inline constexpr char kReset[] = "Reset";
inline constexpr char kDescribeTaken[] = "DescribeTaken";
inline constexpr char kReadTaken[] = "ReadTaken";
inline constexpr char kWriteShard[] = "WriteShard";
inline constexpr char kLookAtFile[] = "LookAtFile";

}  // namespace longhaul::methods
