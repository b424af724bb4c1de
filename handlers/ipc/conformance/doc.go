// Package conformance is the kernel protocol (kernel-ipc) as tests: one text file of conversations per section, held over a
// real socket with a server in the same process.
//
// A file of testdata is a script of commands with the answers the contract demands; the commands are listed at type script
// in script_test.go. Expected answers are written from the contract, not recorded from the server.
//
// Every frame a server sends is also checked against the encoding profile (kernel-ipc §3.3): it must be the smallest
// encoding of its JSON twin and within the frame bound.
package conformance
