// Package tool defines a tool: its call, its answer, its description and its trust.
//
//	Tool            anything that can be run: built in, a worker process, a wasm module
//	Call, Result    what goes in and what comes out (toolhost §3.2, §3.5)
//	Status          OK, INVALID_PICK, TOOL_ERROR, BREAKER_TRIP (toolhost §3.5)
//	DispatchError   the tool could not be run, or not to its end (toolhost §3.5)
//	Worked, Aside   how a built-in tool keeps out of the way of shorter ones
//	Breaker         refuses calls of a tool or policy that fails again and again (toolhost §5)
//	Descriptor      what a list shows and an executor must know (toolhost §4.1)
//	TierOf          what a tool may do to the world, as a number (toolhost §4.4)
//
// It knows no tool and no transport.
package tool
