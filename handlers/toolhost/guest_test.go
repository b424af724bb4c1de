package toolhost

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/stream"
)

const secret = "s3cret"

func guarded(c *Config) { c.APIToken = secret }

// sized returns a line of n bytes without its end.
func sized(head string, n int) string {
	return head + strings.Repeat("x", n-len(head)-len(`"}`)) + `"}`
}

// TestGuestLine: before a connection has shown its token, its lines are short; afterwards they are
// as long as everyone's.
func TestGuestLine(t *testing.T) {
	r := newRig(t, guarded)
	health := func(n int) string { return sized(`{"aid":"_health","x":"`, n) }
	p := r.open(TCP)
	if got := p.ask(health(guestLine)); !strings.HasPrefix(got, `{"ok":true`) {
		t.Errorf("a line at the limit: %.100s", got)
	}
	if got := p.ask(health(guestLine + 1)); got != fault("auth_required") || !p.closed {
		t.Errorf("a line above it: %.100s, closed %v", got, p.closed)
	}
	p = r.open(TCP)
	p.in = []byte(health(guestLine + 1))[:guestLine+2] // its end has not come
	if p.feed(); p.end() != fault("auth_required") || !p.closed {
		t.Error("the end of a long line was waited for")
	}
	p = r.openAs(TCP, "token")
	p.want(`{"aid":"_auth","token":"`+secret+`"}`, `{"ok":true,"principal":"token"}`)
	if got := p.ask(health(1 << 20)); !strings.HasPrefix(got, `{"ok":true`) {
		t.Errorf("a long line of an authenticated connection: %.100s", got)
	}
	for _, via := range []Transport{Stdin, Unix} {
		if got := r.open(via).ask(health(1 << 20)); !strings.HasPrefix(got, `{"ok":true`) {
			t.Errorf("a long line where no token is asked for: %.100s", got)
		}
	}
}

// TestGuestTime: a connection has guestWithin to show its token.
func TestGuestTime(t *testing.T) {
	r := newRig(t, guarded)
	f := func(p *peer, want time.Duration) {
		t.Helper()
		if got := p.s.Load().Until; want != 0 && got != r.clock.Load()+int64(want) || want == 0 && got != 0 {
			t.Errorf("until %d at %d, want %v later", got, r.clock.Load(), want)
		}
	}
	p := r.open(TCP)
	f(p, guestWithin)
	r.pass(time.Second)
	p.ask(`{"aid":"_health"}`, `{"aid":"_auth","token":"wrong"}`)
	f(p, guestWithin-time.Second)
	p.ask(`{"aid":"_auth","token":"` + secret + `"}`)
	f(p, 0)
	f(r.open(Unix), 0)
	f(r.open(Stdin), 0)
	f(newRig(t, nil).open(TCP), 0)
}

// TestGuestReplies: a peer that asks again and again before it shows a token, and perhaps reads
// nothing, is answered only so much.
func TestGuestReplies(t *testing.T) {
	r := newRig(t, guarded)
	for _, line := range []string{`{"aid":"_health"}`, `nope`, `{}`} {
		p := r.open(TCP)
		said := 0
		for range guestReplies {
			p.begin(line)
			said += len(p.out)
			if p.out = p.out[:0]; p.closed {
				break
			}
		}
		if !p.closed || said <= guestReplies || said > guestReplies+256 {
			t.Errorf("%s: %d bytes of answers, closed %v", line, said, p.closed)
		}
		p = r.open(TCP)
		p.ask(`{"aid":"_auth","token":"` + secret + `"}`)
		if p.ask(strings.TrimSuffix(strings.Repeat(line+"\n", 3000), "\n")); p.closed {
			t.Errorf("%s: an authenticated connection is closed", line)
		}
	}
	p := r.open(TCP)
	p.in = []byte(strings.Repeat("nope\n", guestReplies))
	p.feed()
	if p.closed = false; len(p.out) > guestReplies+256 {
		t.Errorf("%d bytes of answers in one turn", len(p.out))
	}
}

// TestSilentGuest: one that does not authenticate in time is closed with a word, whether it is
// silent, asks, or is inside of a line.
func TestSilentGuest(t *testing.T) {
	for _, line := range []string{"", "{", `{"aid":"_health"}` + "\n"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.APIToken, c.Now = secret, nil })
			h := stream.NewHost(stream.Config{Limits: r.srv.SocketLimits(), Open: r.srv.OpenSocket})
			mine, theirs := net.Pipe()
			go func() { _ = h.Serve(theirs, "127.0.0.1:1") }()
			start := time.Now()
			_, _ = io.WriteString(mine, line)
			got, err := io.ReadAll(mine)
			took := time.Since(start)
			if !strings.HasSuffix(string(got), fault("read timeout")+"\n") || err != nil || took < guestWithin || took > guestWithin+2*stream.TickEvery {
				t.Errorf("after %q: %s, %v after %v", line, got, err, took)
			}
			_ = mine.Close()
			_ = h.Close(context.Background())
		})
	}
}

// TestUnfinishedLines: lines that do not end are bounded for all connections together, and a peer
// that sends short ones does not notice.
func TestUnfinishedLines(t *testing.T) {
	r := newRig(t, func(c *Config) { c.UnfinishedLinesBytes = 2 << 20 })
	_, addr := r.pairs("tcp")
	long := sized(`{"aid":"AID.NOOP.v1","x":"`, 3<<20)
	c := dialTools(t, "tcp", addr)
	go func() { _, _ = io.WriteString(c, long) }()
	if got, err := io.ReadAll(c); string(got) != fault("overloaded")+"\n" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if st := r.srv.Stats(); st.UnfinishedRefused != 1 {
		t.Errorf("%d refused, want 1", st.UnfinishedRefused)
	}
	c = dialTools(t, "tcp", addr)
	_, _ = io.WriteString(c, long[:1<<20])
	for r.srv.Stats().Unfinished == 0 {
		time.Sleep(time.Millisecond)
	}
	_, _ = io.WriteString(c, "\"}\n\n")
	if got, err := io.ReadAll(c); string(got) != okReply+"\n" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
