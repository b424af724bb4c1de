package workers

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/workerexec"
)

// TestSwappedNative: a native program is started from the descriptor that was hashed.
func TestSwappedNative(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tool")
	sum := put(t, file, string(text))
	r := newRig(t, func(c *ProcessConfig) { c.Command[0], c.SHA256, c.Limits.OpenFiles = file, sum, 64 }, "good")
	r.want(good) // not swapped

	p, err := openProgram(context.Background(), file, sum, maxProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if !p.native {
		t.Fatal("not seen as native")
	}
	var s pipes
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	put(t, file+".new", "#!/bin/sh\nexit 9\n")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if _, err := r.launch(context.Background(), p, s.theirs()); err != errHash {
		t.Errorf("swapped before the start: %v", err)
	}
	argv := workerexec.Argv(workerexec.Limits{}, workerexec.ByDescriptor, r.cfg.Command)
	begun, err := r.launchSelf(context.Background(), &selfStart{argv: argv, streams: s.theirs(), files: []*os.File{p.file}, limit: launchLimit})
	if err != nil || begun.said != "" {
		t.Fatal(begun.said, err)
	}
	s.closeTheirs()
	if _, err := s.in.w.WriteString("{}\n"); err != nil {
		t.Error(err)
	}
	if line, err := bufio.NewReader(s.out.r).ReadString('\n'); line != okReply {
		t.Errorf("%q, %v", line, err)
	}
	discard(begun.proc)
}

// TestNoDescriptorForTheProgram: the one that was hashed is closed when the program begins.
func TestNoDescriptorForTheProgram(t *testing.T) {
	text, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	sum := put(t, filepath.Join(t.TempDir(), "copy"), string(text))
	f := func(sum string) string {
		r := newRig(t, func(c *ProcessConfig) {
			c.Command = []string{"/bin/sh", "-c", `read x; echo "{\"status\":\"OK\",\"output_json\":\"$0 $(echo $(ls /proc/self/fd))\"}"`}
			c.SHA256, c.Oneshot = sum, true
		})
		return short(r.call(10e9, "{}", nil))
	}
	if without, with := f(""), f(sum); without != with || !strings.HasPrefix(with, "OK /bin/sh 0 1 ") {
		t.Errorf("%s, without a hash %s", with, without)
	}
}

// TestBusyFile: a program that someone has open for writing is not started.
func TestBusyFile(t *testing.T) {
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "tool")
	sum := put(t, file, string(text))
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // not written
	r := newRig(t, func(c *ProcessConfig) { c.Command, c.SHA256 = []string{file}, sum })
	if got := short(r.call(10e9, "{}", nil)); !strings.Contains(got, `not_found "fork/exec `+file+`: text file busy"`) {
		t.Errorf("%s", got)
	}
}
