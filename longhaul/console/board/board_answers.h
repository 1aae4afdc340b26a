#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/console/board/board_runs.h"
#include "longhaul/status/http_reply.h"

namespace longhaul::console {

// What a board answers (docs/guide/board.md). Clients name runs and tags by numbers, so that no path comes from them.
// All replies are bounded (board_limits.h). Errors: InvalidArgumentError for a query that makes no sense, NotFoundError
// for what there is not. Any thread may call.
HttpReply runs_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply scalars_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply histograms_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply images_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply image_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply texts_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply training_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply checkpoints_answer(const BoardRuns& runs, const HttpQuery& query);
HttpReply options_answer(const BoardRuns& runs, const HttpQuery& query);

// These and the files of the page. Errors of the query become replies.
std::vector<HttpRoute> board_routes(const std::shared_ptr<const BoardRuns>& runs);

// The run that "run" names.
std::shared_ptr<BoardRun> run_in(const BoardRuns& runs, const HttpQuery& query);
// Its events. NotFoundError: none was read yet.
std::shared_ptr<RunEvents> events_in(const BoardRuns& runs, const HttpQuery& query);

HttpReply json_reply(std::string json);
// The shortest text that is this number; null: it is not finite.
void append_number(std::string& json, double value);

}  // namespace longhaul::console
