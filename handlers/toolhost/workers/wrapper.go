package workers

import (
	"fmt"
	"slices"

	"trunkline/handlers/toolhost/procgroup"
)

// Wrapper is a command that programs are started through, as one that confines them: their path and their arguments follow its own. It
// has to execute them, and must neither leave the process group nor use its standard streams. The zero Wrapper is none.
type Wrapper struct {
	// Command is the wrapper and its arguments: a path, or a bare name that is looked up in Path. No tool's environment changes it.
	Command []string
	// Path is as the variable PATH is.
	Path string
}

func (w *Wrapper) none() bool { return len(w.Command) == 0 }

// Check reports why nothing can be started through the wrapper now, nil if nothing is known to be in the way.
func (w *Wrapper) Check() error {
	_, err := w.file()
	return err
}

func (w *Wrapper) file() (string, error) {
	if w.none() {
		return "", nil
	}
	return procgroup.Executable(w.Command[0], []string{"PATH=" + w.Path})
}

// errWrapper is an error of the wrapper, where it could be taken for one of the program.
func errWrapper(err error) error { return fmt.Errorf("cannot use the wrapper: %w", err) }

// around returns what is started, and with which arguments, so that the program at path runs as command.
func (w *Wrapper) around(path string, command []string) (file string, argv []string, err error) {
	if w.none() {
		return path, command, nil
	}
	if file, err = w.file(); err != nil {
		return "", nil, errWrapper(err)
	}
	return file, slices.Concat(w.Command, []string{path}, command[1:]), nil
}
