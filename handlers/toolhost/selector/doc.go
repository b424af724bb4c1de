// Package selector runs the part of a run context that needs no session (toolhost §3.7, §4.8): it shows a caller's goal and state to
// a selector that chooses the next tool, and judges what was chosen.
//
//	ReadOpen         a _run.open line as a Request, every member judged
//	Open             a Request as a Run
//	Run.Select       one step: menu ──► limits ──► selector ──► judgement, patch merged into the inputs
//	parseSelection   the text of a selector as a Selection
//	Policy           an external program that chooses, with its guards and its breaker
//
// The grammar of a selector's text; space, tab, CR and LF may stand around it and between its parts:
//
//	<ASK_SUP> <END>
//	<NOOP> <END>
//	<PICK> <SIDdddd> [ <INP>object</INP> | <INP64>base64 of object</INP64> ] <END>
//
// Anything else is INVALID (toolhost D14). Because nothing may follow <END>, the patch of <INP> reaches to the last </INP>: a string
// in the object may hold the tag.
//
// A policy program is started without a shell, as workers are (see shim): in its own process group, with its limits and no_new_privs from
// its first instruction on, and few variables; its group is killed when it ends or its time is over. What it was asked is in a file that only this user can read and that is gone afterwards.
// The program is still the operator's: guards keep a wrong setting from running something else, they do not contain an enemy. A
// descendant that starts a session of its own leaves the group and is not ended.
//
// Not implemented, on purpose: reading what a policy writes to stderr (toolhost D27), and selectors that live inside the server
// beside the heuristic one.
package selector
