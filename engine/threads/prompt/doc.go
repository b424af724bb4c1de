// Package prompt makes what wakes an agent: sanitised prompts, their envelopes, the arguments of
// fallback commands, and the target that a runtime names (threads §4.9). It does no I/O.
//
//	sanitize.go   Sanitize and its bounds
//	envelope.go   AppendEnvelope, SpawnPrompt: text that is pasted, or is one argument
//	command.go    Argv, DisplayCommand, ResumableSession
//	runtime.go    ParseRuntime, MatchSession
//
// Prompts are foreign. What Sanitize returns holds no byte that a terminal obeys but TAB and LF,
// and no line that a reader takes for the head or the end of an envelope.
package prompt
