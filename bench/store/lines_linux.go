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

const askTimeout = 10 * time.Second

// startMore starts a server with tools and more beside the kernel protocol, and returns where each
// of its listeners listens, by the names in its banner.
func startMore(r *part.Run, mode string, more ...string) (s *load.Server, at map[string]string, err error) {
	c := load.Trunkline(r.Binary, settings(r, mode, append(more, "toolhost.listen_addr=127.0.0.1:0", "toolhost.loops="+strconv.Itoa(r.Loops))...)...)
	c.Env, c.Listening = []string{"MACHINA_API_TOKEN="}, regexp.MustCompile(`^admin listening()`) // the last line of the banner
	if s, err = r.Start(c); err != nil {
		return nil, nil, err
	}
	at = map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(.*) listening on (\S+)`).FindAllStringSubmatch(s.Output(), -1) {
		at[m[1]] = m[2]
	}
	s.Addr = at["kernel ipc"]
	return s, at, nil
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

func answers(r *part.Run, addr string, tapes []*load.Tape, depth int, good string) load.Config {
	cfg := r.Config(addr, load.Answers, tapes, depth)
	cfg.Good, cfg.Spin = good, cfg.Spin || depth == polled.depth // where no disk is waited for
	return cfg
}

func (b *bench) addNoop(s *load.Server, addr string, at size) goal.Cell {
	tapes := each(at.conns, nil, func(int) string { return `{"aid":"AID.NOOP.v1"}` + "\n" })
	return b.add("toolhost", "AID.NOOP.v1", s, answers(b.Run, addr, tapes, at.depth, `{"ok":true,`))
}
