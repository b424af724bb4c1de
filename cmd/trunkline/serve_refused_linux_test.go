package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// stranger is a user who owns nothing.
const stranger = 65534

// startRefused runs a server on dir, which is expected to end by itself, and returns its exit code
// and what it printed.
func startRefused(t *testing.T, program, dir string, as *syscall.SysProcAttr) (code int, talk string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a start that never ends is the failure
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "serve", "--listen=127.0.0.1:0", "--http-listen=", "--admin-listen=", "--set", "store.dir="+dir)
	cmd.Args[0] = "trunkline" // see TestMain
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.Dir = &out, &out, as, "/"
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String()
}

func wantRefused(t *testing.T, what string, code, want int, talk string, parts ...string) {
	t.Helper()
	if code != want || strings.Contains(talk, "damaged") {
		t.Errorf("%s: exit code %d, want %d:\n%s", what, code, want, talk)
	}
	for _, p := range parts {
		if !strings.Contains(talk, p) {
			t.Errorf("%s: no %q in:\n%s", what, p, talk)
		}
	}
}

// used is a store that a server was killed on, so that the next start has something to write.
func used(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, os.Args[0], "serve", "--listen=127.0.0.1:0", "--http-listen=", "--admin-listen=", "--set", "store.dir="+dir)
	cmd.Args[0] = "trunkline"
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var talk []byte
	for b := make([]byte, 4096); !bytes.Contains(talk, []byte(`serving`)); {
		n, err := r.Read(b)
		if talk = append(talk, b[:n]...); err != nil {
			t.Fatalf("%v: %s", err, talk)
		}
	}
	kill()
	_ = cmd.Wait()
	r.Close()
	// The socket of a server that was killed stays, and os.CopyFS takes no sockets.
	if err := os.Remove(filepath.Join(dir, "backups", "control")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAStartThatMayNotWrite: a directory that cannot be written, empty or used, ends a start with
// exit code 4 and the system's words.
func TestAStartThatMayNotWrite(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to start a server as another user")
	}
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	home, err := os.MkdirTemp("", "refused") // that of the test belongs to root alone
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(home, "program")
	if err := copyProgram(program); err != nil {
		t.Fatal(err)
	}
	code, talk := startRefused(t, program, filepath.Join(home, "data"), as)
	wantRefused(t, "no directory", code, 4, talk, "mkdir "+home+"/data: permission denied", "hint: this user may not")

	dir := filepath.Join(home, "used")
	if err := os.CopyFS(dir, os.DirFS(used(t))); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if err := os.Chown(name, stranger, stranger); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { // its files may be written, none may be made
		t.Fatal(err)
	}
	code, talk = startRefused(t, program, dir, as)
	wantRefused(t, "no new files", code, 4, talk, dir+"/", "permission denied", "hint: this user may not")
	if strings.Contains(talk, "journal is full") {
		t.Errorf("it is called full:\n%s", talk)
	}
}

func copyProgram(to string) error {
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// TestAStartWithoutRoom: a disk without room, or without inodes, ends a start with exit code 5.
func TestAStartWithoutRoom(t *testing.T) {
	from := used(t)
	f := func(what, options string, fill func(dir string) error) {
		t.Helper()
		disk := t.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, options); err != nil {
			t.Skipf("needs a small disk: %v", err)
		}
		defer func() { _ = syscall.Unmount(disk, 0) }()
		dir := filepath.Join(disk, "data")
		err := os.Mkdir(dir, 0o700)
		if fill != nil && err == nil {
			err = os.CopyFS(dir, os.DirFS(from))
		}
		if fill != nil && err == nil {
			err = fill(disk)
		}
		if err != nil {
			t.Fatal(err)
		}
		code, talk := startRefused(t, os.Args[0], dir, nil)
		wantRefused(t, what, code, 5, talk, "no space left on device", "hint: the disk has no room")
	}
	f("an empty disk that is too small", "size=4k", nil)
	f("an empty disk with too few inodes", "size=64m,nr_inodes=6", nil)
	f("a full disk", "size=64m", func(disk string) error {
		b := make([]byte, 1<<20)
		file, err := os.Create(filepath.Join(disk, "filler"))
		for err == nil {
			_, err = file.Write(b)
		}
		_ = file.Close()
		return nil
	})
	f("a disk without inodes", "size=64m,nr_inodes=64", func(disk string) error {
		for err := error(nil); err == nil; {
			var file *os.File
			if file, err = os.CreateTemp(disk, "filler"); err == nil {
				err = file.Close()
			}
		}
		return nil
	})
}
