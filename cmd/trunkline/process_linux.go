package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/engine/procgroup"
)

// keepDescriptors has the programs that are started not inherit what this one was started with: a
// log, a secret or a listening socket of a supervisor is nothing for a tool. An old kernel that
// cannot do it is no reason not to run.
func keepDescriptors() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// secretsFile names the descriptor of the secrets in the process that hideSecrets starts.
const secretsFile = "TRUNKLINE_SECRETS_DESCRIPTOR"

// maxSecrets bounds what is read from that descriptor: no environment of a process is larger.
const maxSecrets = 32 << 20

// hideSecrets takes the tokens of the tool server out of the process's environment as the system
// shows it to others of the same user, to root and so to every tool (/proc/PID/environ): that is
// what the process was started with, whatever it sets later. The process replaces itself by the
// same program, under the same identifier, with the tokens in a file in memory that only it has,
// and sets them again when it has read that. Without tokens it does nothing. Where the system has
// no such files it returns an error, and the environment is as it was.
func hideSecrets() error {
	if text, ok := os.LookupEnv(secretsFile); ok {
		os.Unsetenv(secretsFile)
		return takeSecrets(text)
	}
	var secrets, rest []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); procgroup.Secret(name) {
			secrets = append(secrets, kv)
		} else {
			rest = append(rest, kv)
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	fd, err := unix.MemfdCreate("environment", 0)
	if err != nil {
		return fmt.Errorf("cannot make a file in memory: %w", err)
	}
	defer unix.Close(fd)
	if _, err = unix.Write(fd, []byte(strings.Join(secrets, "\x00"))); err == nil {
		_, err = unix.Seek(fd, 0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	if stdoutClosed() {
		unix.Close(1) // as it was found
	}
	return execAgain(os.Args, append(rest, secretsFile+"="+strconv.Itoa(fd)))
}

// takeSecrets sets what hideSecrets left behind a descriptor.
func takeSecrets(descriptor string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil || fd <= 2 {
		return fmt.Errorf("cannot use %s = %q", secretsFile, descriptor)
	}
	f := os.NewFile(uintptr(fd), "environment")
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxSecrets))
	if err != nil {
		return fmt.Errorf("cannot use %s = %q: %w", secretsFile, descriptor, err)
	}
	for kv := range bytes.SplitSeq(all, []byte{0}) {
		name, value, _ := strings.Cut(string(kv), "=")
		if procgroup.Secret(name) {
			os.Setenv(name, value)
		}
	}
	return nil
}
