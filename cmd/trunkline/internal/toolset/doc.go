// Package toolset makes the tools of a tool server: out of its plugins, the built-in tools, and the
// environment names of the protocol (toolhost §4.7, §4.9, §4.10, §6).
//
//	Options ──► Open ──► Set ──► ServerConfig ──► toolhost.New
//	plugins, built-ins        registry, workers
//
// A Set belongs to one server, or to one call of a single-shot mode: its breakers and worker
// processes are its own.
package toolset
