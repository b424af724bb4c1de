// Package conformance is the kernel protocol (kernel-ipc) as tests: one script per section, run
// over a socket with a server in the same process. Type script in script_test.go lists the
// commands. The expected answers are written from the contract, not recorded from the server. Every
// frame of a server must also be the smallest encoding of its JSON twin (kernel-ipc §3.3).
package conformance
