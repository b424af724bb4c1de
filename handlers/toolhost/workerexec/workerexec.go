// Package workerexec is the first code of a worker's process: the server starts its own binary
// again, this package sets the limits, and the worker's program takes the process over.
//
// A binary for linux/amd64 with an entry of its own does that before the Go runtime begins
// (Replace), in a third of the time. Elsewhere packages are initialised then, those imported first:
// this one is early as long as it imports only os, strconv and syscall, and not strings.
package workerexec

import (
	"os"
	"strconv"
)

// Verb is the first argument that makes a process a worker.
const Verb = "internal-worker"

const (
	// StatusFD is where a start that failed is reported. It ends when the program begins.
	StatusFD = 3
	// programFD is the descriptor of a program that is started from an open file.
	programFD = 4
	// ByDescriptor is the path of that file.
	ByDescriptor = "/proc/self/fd/4"
)

// failedCode is the exit code of a process whose program could not be started.
const failedCode = 127

// Limits are what a process is limited to, if the server itself is not limited to less; 0 leaves a
// resource as the server has it. Best effort: nothing is limited on systems other than Linux.
type Limits struct {
	AddressSpace int64 // bytes
	Data         int64 // bytes of memory that can be written to
	CPU          int64 // seconds
	FileSize     int64 // bytes
	OpenFiles    int64
	UserThreads  int64 // of all processes of the user
}

// fields are the limits in the order of the argument that carries them.
func (l *Limits) fields() [6]*int64 {
	return [...]*int64{&l.Data, &l.CPU, &l.FileSize, &l.OpenFiles, &l.UserThreads, &l.AddressSpace}
}

// Argv returns the arguments of a process that becomes the program at path, "" for a worker of
// Stays.
func Argv(l Limits, path string, argv []string) []string {
	var text []byte
	for _, f := range l.fields() {
		text = append(strconv.AppendInt(text, *f, 10), ',')
	}
	return append([]string{"trunkline", Verb, string(text), path}, argv...)
}

// Stays returns the arguments of a process that is a worker of this binary, else nil.
func Stays() []string {
	if _, path, argv, ok := asked(); ok && path == "" {
		return argv
	}
	return nil
}

func asked() (limits, path string, argv []string, ok bool) {
	if len(os.Args) < 5 || os.Args[1] != Verb {
		return "", "", nil, false
	}
	return os.Args[2], os.Args[3], os.Args[4:], true
}

func init() {
	limits, path, argv, ok := asked()
	if !ok {
		return
	}
	if path == "" {
		confine(limits)
		return
	}
	become(limits, path, argv)
}
