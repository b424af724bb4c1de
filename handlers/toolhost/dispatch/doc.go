// Package dispatch is the caller's side of the tool server, for programs in Go (toolhost §4.11).
//
//	Run, Config      one process for each call, the way the Python layer does it:
//	                 <root>/build/machina_cli tool_exec <aid>, the request on its stdin, one line of JSON on its stdout
//	Dial, Conn       calls over one connection to a server, one at a time, a line each (toolhost §2.2)
//
// The output of a tool is the text of a JSON object. A call that ends otherwise returns an error of one of these types, which
// errors.As tells apart:
//
//	*ToolResult           the tool was reached, and its status is not OK (toolhost §3.5)
//	*tool.DispatchError   there is no answer of a tool: the program is missing, took too long, failed, or wrote something else
//	*Refusal              the server did not run the tool (toolhost §3.3; connections only)
//
// Nothing here knows the server: it takes any program that speaks the protocol.
package dispatch
