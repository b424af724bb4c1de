package store

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// askTimeout bounds one request beside a load, and the wait for a listener.
const askTimeout = 10 * time.Second

// startMore starts a server with tools and more beside the kernel protocol, and returns where the
// listeners of those names listen.
func startMore(r *part.Run, mode string, more []string, listeners ...string) (s *load.Server, addrs []string, err error) {
	c := load.Trunkline(r.Binary, settings(r, mode, append(more, "toolhost.listen_addr=127.0.0.1:0", "toolhost.loops="+strconv.Itoa(r.Loops))...)...)
	c.Env = []string{"MACHINA_API_TOKEN="}
	if s, err = r.Start(c); err != nil {
		return nil, nil, err
	}
	start := time.Now()
	for _, name := range listeners {
		pattern := regexp.MustCompile(`(?m)^` + name + ` listening on (127\.0\.0\.1:\d+)`)
		m := pattern.FindStringSubmatch(s.Output())
		for ; m == nil; m = pattern.FindStringSubmatch(s.Output()) {
			if time.Sleep(time.Millisecond); time.Since(start) > askTimeout {
				return nil, nil, fmt.Errorf("cannot find where %s listens:\n%s", name, s.Output())
			}
		}
		addrs = append(addrs, m[1])
	}
	return s, addrs, nil
}

// ask writes a request to a connection of its own, and reads until what comes back matches. It
// returns the first group.
func ask(addr, request, pattern string) (found string, err error) {
	c, err := load.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askTimeout)) // an error shows with the next call
	if _, err := c.Write([]byte(request)); err != nil {
		return "", err
	}
	want, got, buf := regexp.MustCompile(pattern), []byte(nil), make([]byte, 64<<10)
	for err == nil && len(got) < len(buf) {
		var n int
		n, err = c.Read(buf)
		got = append(got, buf[:n]...)
		if m := want.FindSubmatch(got); m != nil {
			return string(m[1]), nil
		}
	}
	return "", fmt.Errorf("no %s in %q: %w", pattern, got, err)
}

// answers is a load of lines whose replies begin with good. It polls where no disk is waited for.
func answers(r *part.Run, addr string, tapes []*load.Tape, depth int, good string) load.Config {
	cfg := r.Config(addr, load.Answers, tapes, depth)
	cfg.Good, cfg.Spin = good, cfg.Spin || depth == polled.depth
	return cfg
}

// addNoop adds the tool that does nothing.
func (b *bench) addNoop(s *load.Server, addr string, at size) goal.Cell {
	tapes := each(at.conns, nil, func(int) string { return `{"aid":"AID.NOOP.v1"}` + "\n" })
	return b.add("toolhost", "AID.NOOP.v1", s, answers(b.Run, addr, tapes, at.depth, `{"ok":true,`))
}
