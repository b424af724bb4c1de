package part

import (
	"fmt"
	"io"
	"slices"

	"trunkline/bench/internal/load"
)

// childFlag is the first argument of this program where it is the child of a run.
const childFlag = "-child"

// ChildArgs are the arguments with which this program is a child of that name (Part.Children), with
// arguments of its own.
func ChildArgs(name string, args ...string) []string {
	return slices.Concat([]string{childFlag, name}, args)
}

// IsChild reports that these are ChildArgs. A test binary whose parts have children passes them to
// Main from its TestMain.
func IsChild(args []string) bool { return len(args) > 0 && args[0] == childFlag }

// Child starts this program as a child that prints where it listens, as peers do. server is its
// name in the tables.
func (r *Run) Child(server, name string, args ...string) (*load.Server, error) {
	return r.Rig.Peer(server, "", ChildArgs(name, args...)...)
}

// beChild is the child that is named first until its end, and returns the exit status.
func beChild(parts []Part, args []string, complain io.Writer) int {
	for _, p := range parts {
		if len(args) == 0 || p.Children[args[0]] == nil {
			continue
		}
		if err := p.Children[args[0]](args[1:]); err != nil {
			fmt.Fprintf(complain, "%s: %v\n", args[0], err)
			return exitFailed
		}
		return 0
	}
	fmt.Fprintf(complain, "cannot be the child %q\n", args)
	return exitUsage
}
