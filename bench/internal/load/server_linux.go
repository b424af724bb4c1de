package load

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	startTimeout = 15 * time.Second
	stopTimeout  = 10 * time.Second
	// keptLines is how much of a server's output is remembered for the message when it fails.
	keptLines = 40
)

// Patterns of the line by which a server reports where it listens; the first group is the address.
var (
	PeerListening      = regexp.MustCompile(`^listening (\S+)`)
	redisReady         = regexp.MustCompile(`Ready to accept connections()`)
	trunklineListening = regexp.MustCompile(`^admin (?:listening|off)()`) // the last line of its banner
	listener           = regexp.MustCompile(`^([a-z ]+) listening on (\S+)`)
)

// ServeHTTP is a peer for its whole life: it serves on a free port, which it reports as
// PeerListening wants.
func ServeHTTP(h http.Handler) error {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening", ln.Addr())
	return http.Serve(ln, h)
}

// Command is how to start a server.
type Command struct {
	Name      string
	Path      string
	Args      []string
	Env       []string // added to this process's own environment
	Listening *regexp.Regexp
	CPUs      []int  // pin the process to these CPUs; empty: anywhere
	TempStore bool   // give it a store.dir of its own, which goes with the process
	TempDir   string // where that is made; empty: in os.TempDir
	// Line is called for each line of the output, one at a time, without its end; nil: not at all.
	Line func(line string)
}

// Server is a server process that this program started.
type Server struct {
	Name string
	Addr string // of the pattern; of a trunkline the address of the kernel protocol

	cmd    *exec.Cmd
	temp   string // directory to be removed after its end, or empty
	exited chan struct{}

	mu        sync.Mutex
	lines     []string          // the last keptLines of its output
	listeners map[string]string // addresses by the names in a trunkline's banner
}

// StartServer starts a process of its own and waits until it reports that it listens.
func StartServer(c Command) (*Server, error) {
	s := &Server{Name: c.Name, exited: make(chan struct{}), listeners: map[string]string{}}
	out, err := s.start(&c)
	if err != nil {
		_ = os.RemoveAll(s.temp)
		return nil, fmt.Errorf("cannot start %s: %w", c.Name, err)
	}
	found := make(chan string, 1)
	go s.follow(out, c, found)
	select {
	case addr := <-found:
		s.Addr = cmp.Or(addr, s.Listener("kernel ipc"))
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("cannot start %s: it ended; its output:\n%s", c.Name, s.Output())
	case <-time.After(startTimeout):
		s.Stop()
		return nil, fmt.Errorf("cannot start %s: no listening line within %v; its output:\n%s", c.Name,
			startTimeout, s.Output())
	}
}

// start starts the process, with a directory for its store if it is to have one, and returns its
// output.
func (s *Server) start(c *Command) (out io.ReadCloser, err error) {
	args := c.Args
	if c.TempStore {
		if s.temp, err = os.MkdirTemp(c.TempDir, "trunkline-store-"); err != nil {
			return nil, err
		}
		args = append(slices.Clip(args), "--set", "store.dir="+s.temp)
	}
	s.cmd = exec.Command(c.Path, args...)
	s.cmd.Env = append(os.Environ(), c.Env...)
	if out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	s.cmd.Stderr = s.cmd.Stdout
	return out, StartPinned(s.cmd, c.CPUs)
}

// StartPinned starts cmd, on the given CPUs if there are any, and binds its life to this process: a
// child inherits the affinity of the thread that forks it. The thread is not given back, so that no
// other goroutine runs pinned and the child's death signal is bound to a thread that lives.
func StartPinned(cmd *exec.Cmd, cpus []int) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if len(cpus) > 0 {
			if err := pin(cpus); err != nil {
				result <- err
				return
			}
		}
		err := cmd.Start()
		result <- err
		if err == nil {
			select {} // Pdeathsig fires when the forking thread ends
		}
	}()
	return <-result
}

// follow reads the server's output to its end, so that a full pipe never blocks it, and then reaps
// it.
func (s *Server) follow(out io.ReadCloser, c Command, found chan<- string) {
	defer close(s.exited)
	defer os.RemoveAll(s.temp) // in a directory for what may stay behind
	defer s.cmd.Wait()
	defer out.Close()
	reported := false
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			text := strings.TrimRight(string(line), "\n")
			s.keep(text)
			if c.Line != nil {
				c.Line(text)
			}
			if m := c.Listening.FindSubmatch(line); m != nil && !reported {
				reported = true
				found <- string(m[1])
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (s *Server) keep(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := listener.FindStringSubmatch(line); m != nil {
		s.listeners[m[1]] = m[2]
	}
	if len(s.lines) == keptLines {
		s.lines = append(s.lines[:0], s.lines[1:]...)
	}
	s.lines = append(s.lines, line)
}

// Output returns the last lines of the server's output.
func (s *Server) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// Listener returns where a trunkline listens, by the name in its banner; empty if it does not.
func (s *Server) Listener(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners[name]
}

// PID returns the process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Alive reports that the process has not ended.
func (s *Server) Alive() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Memory returns the resident memory.
func (s *Server) Memory() (Memory, error) { return memoryOf(s.PID()) }

// Stop sends SIGTERM, waits, and kills the process if it does not end. It may be called twice.
func (s *Server) Stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		return
	case <-time.After(stopTimeout):
	}
	s.cmd.Process.Kill()
	<-s.exited
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("cannot kill %s: %w", s.Name, err)
	}
	<-s.exited
	return nil
}

// FindBinary returns the path of the server binary, or builds it from source into dir if path is
// empty.
func FindBinary(path, source, dir string) (string, error) {
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("cannot find the server binary: %w", err)
		}
		return filepath.Abs(path)
	}
	out := filepath.Join(dir, filepath.Base(source))
	if b, err := exec.Command("go", "build", "-o", out, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", source, err, b)
	}
	return out, nil
}

// RaiseFileLimit raises the soft limit of open files to the hard limit, for this process and the
// servers that it starts: the Go runtime raises its own limit, but does not pass that on.
func RaiseFileLimit() error {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	if l.Cur = l.Max; err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
	}
	if err != nil {
		return fmt.Errorf("cannot raise the limit of open files: %w", err)
	}
	return nil
}

// Trunkline returns how to start the server under test on free ports, with settings given as
// key=value: a throw-away instance, in store.mode memory. A setting or the environment
// (TRUNKLINE_STORE_MODE) may ask for a mode that keeps state; then it is in store.dir where a
// setting or the environment names one, else in a temporary directory of that server.
func Trunkline(path string, settings ...string) Command {
	c := Command{Name: "trunkline", Path: path, Args: []string{"serve", "--dev"}, Listening: trunklineListening}
	if mode := named("store.mode", settings); mode != "" && mode != "memory" {
		// What --dev is beside its store.mode.
		c.Args = []string{"serve", "--log-format", "text", "--set", "admin.pprof=true"}
		c.TempStore = named("store.dir", settings) == ""
	}
	for _, kv := range append([]string{"kernel.listen_addr=127.0.0.1:0", "http.listen_addr=127.0.0.1:0",
		"admin.listen_addr=127.0.0.1:0", "threads.listen_addr=", "threads.lines_addr="}, settings...) {
		c.Args = append(c.Args, "--set", kv)
	}
	return c
}

// named returns what the server will find for key among the settings, of which the last one counts,
// or in the environment; empty if it is not named.
func named(key string, settings []string) string {
	for _, kv := range slices.Backward(settings) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return os.Getenv("TRUNKLINE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")))
}

// downloadTimeout bounds one page of the admin listener, beside the time that it is asked to
// measure for.
const downloadTimeout = 20 * time.Second

// Profile runs a load against a trunkline with admin.pprof and writes a CPU profile of the server
// under that load to the file path, whose directory is created.
func (s *Server) Profile(cfg Config, warmup, lasting time.Duration, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("cannot create a directory for profiles: %w", err)
	}
	session, err := Start(cfg)
	if err != nil {
		return err
	}
	time.Sleep(warmup)
	err = s.Download(fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", lasting.Seconds()), path, lasting+downloadTimeout)
	_, stopErr := session.Stop()
	if err := errors.Join(err, stopErr); err != nil {
		return fmt.Errorf("cannot profile %s: %w", s.Name, err)
	}
	return nil
}

// page is a page of the server's admin listener.
func (s *Server) page(name string, within time.Duration) ([]byte, error) {
	admin := s.Listener("admin")
	if admin == "" {
		return nil, fmt.Errorf("cannot look into %s: it names no admin address", s.Name)
	}
	client := http.Client{Timeout: within}
	res, err := client.Get("http://" + admin + name)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", name, res.Status)
	}
	return io.ReadAll(res.Body)
}

// Download writes a page of the server's admin listener to a file.
func (s *Server) Download(page, path string, within time.Duration) error {
	b, err := s.page(page, within)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return fmt.Errorf("%s is empty", page)
	}
	return os.WriteFile(path, b, 0o666)
}

// Metrics reads what the server's admin listener exports, by name with labels as they stand there.
func (s *Server) Metrics() (map[string]float64, error) {
	b, err := s.page("/metrics", downloadTimeout)
	values := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		if at < 1 || line[0] == '#' {
			continue
		}
		if values[line[:at]], err = strconv.ParseFloat(line[at+1:], 64); err != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics of %s: %w", s.Name, err)
	}
	return values, nil
}
