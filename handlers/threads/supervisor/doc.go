// Package supervisor works off the trigger jobs of agent threads (threads §4.9): it pastes prompts
// into panes of tmux, and runs fallback commands. It decides nothing about a job: a Supervisor
// claims attempts from its Jobs, executes them, and reports their outcomes.
//
//	claim ──► Supervisor ──► Tmux.Deliver   a prompt for a live runtime
//	                     └─► Runner.Run     a command that resumes or starts one
//
// A prompt reaches a pane only if tmux lists that pane under exactly the given names, and again
// immediately before the paste. Names of windows and commands are chosen by what runs in panes:
// package supervisor takes them as hostile. The prompt itself is never an argument of tmux.
package supervisor
