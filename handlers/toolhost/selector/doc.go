// Package selector runs the part of a run context that needs no session (toolhost §3.7, §4.8): it
// shows a caller's goal and state to a selector that chooses the next tool, and judges the choice.
//
//	ReadOpen         a _run.open line as a Request, every member judged
//	Open             a Request as a Run
//	Run.Select       one step: menu ──► limits ──► selector ──► judgement, patch merged
//	parseSelection   the text of a selector as a Selection
//	Policy           an external program that chooses, with its guards and its breaker
//
// The grammar of a selector's text; white space may stand around it and between its parts:
//
//	<ASK_SUP> <END>
//	<NOOP> <END>
//	<PICK> <SIDdddd> [ <INP>object</INP> | <INP64>base64 of object</INP64> ] <END>
//
// Anything else is INVALID (toolhost D14). Nothing may follow <END>, so the patch of <INP> reaches
// to the last </INP>.
//
// A policy program is started without a shell, as workers are (see workerexec): in its own process
// group, with its limits and no_new_privs, and few variables; its group is killed when it ends or
// its time is over. Its question is in a file that only this user can read and that is removed
// afterwards. Guards do not contain an enemy. A descendant with a session of its own is not ended.
//
// Not implemented, on purpose: a policy's stderr (toolhost D27), and further selectors in the
// server.
package selector
