package load

import (
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit/fakekernel"
)

func pacedConfig(addr string) Config {
	return Config{
		Addr: addr, Tapes: tapes(3, request("A", "p"), request("B", "q")), Depth: 8,
		PerSec: 2000, For: 100 * time.Millisecond,
	}
}

func TestPacedSendsWhatIsDue(t *testing.T) {
	srv := fakekernel.Start(t, 0, nil)
	var all []time.Time
	cfg := pacedConfig(srv.Addr)
	h, err := RunToEnd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if seen := srv.Count("A") + srv.Count("B"); seen != 200 || h.Total() != 200 {
		t.Errorf("the server saw %d requests, %d latencies, want 200", seen, h.Total())
	}
	cfg.Each = func(at time.Time, latency time.Duration) {
		all = append(all, at)
		if latency < 0 {
			t.Errorf("a latency of %v", latency)
		}
	}
	if h, err = RunToEnd(cfg); err != nil || h.Total() != 0 {
		t.Errorf("%v, %d latencies in the histogram that were taken elsewhere", err, h.Total())
	}
	slices.SortFunc(all, time.Time.Compare) // replies of several connections come in any order
	due := map[time.Duration]int{}
	for _, at := range all {
		due[at.Sub(all[0])/(10*time.Millisecond)]++
	}
	for i := range time.Duration(10) {
		if due[i] != 20 {
			t.Errorf("%d latencies in slice %d, want the 20 that were due in it", due[i], i)
		}
	}
}

// A server that answers nothing for a while must not lower the count, only raise the latencies of
// what was due meanwhile.
func TestPacedCountsFromWhenDue(t *testing.T) {
	const pause = 60 * time.Millisecond
	first := true
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if first {
			first = false
			time.Sleep(pause)
		}
		return fakekernel.OK(r.ID)
	})
	cfg := pacedConfig(srv.Addr)
	cfg.Depth = 1
	all, err := RunToEnd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if all.Total() != 200 {
		t.Errorf("%d replies, want all 200", all.Total())
	}
	// What was due in the first three quarters of the pause, 45 % of all, waited for at least a
	// quarter of it.
	if late := all.Quantile(0.75); late < pause/4 {
		t.Errorf("three quarters were answered within %v although the server paused for %v", late, pause)
	}
}

// TestPacedBursts: with bursts, a tick's requests are one connection's, and the connections take
// turns; polling changes no count.
func TestPacedBursts(t *testing.T) {
	srv := fakekernel.Start(t, 0, nil)
	cfg, err := pacedConfig(srv.Addr), error(nil)
	cfg.Tick, cfg.Burst, cfg.Spin, cfg.PerSec = 250*time.Microsecond, 64, true, 20000
	if cfg.CPUs, err = new(Rig).Divide(); err != nil {
		t.Fatal(err)
	}
	got, err := RunToEnd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Total(); n != 2000 || srv.Count("A")+srv.Count("B") != 2000 {
		t.Errorf("%d latencies for 2000 requests", n)
	}
}

func TestPacedRefuses(t *testing.T) {
	f := func(want string, change func(c *Config)) {
		t.Helper()
		srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return nil })
		cfg := pacedConfig(srv.Addr)
		change(&cfg)
		_, err := RunToEnd(cfg)
		if err == nil || !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(err.Error(), w) }) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f("cannot dial nowhere", func(c *Config) { c.Addr = "nowhere" })
	f("cannot run", func(c *Config) { c.Depth = 0 })
	f("cannot run", func(c *Config) { c.PerSec = 0 })
	f("cannot run", func(c *Config) { c.For = -1 })
	f("cannot run", func(c *Config) { c.Tick = -1 })
	f("empty tape", func(c *Config) { c.Tapes = []*Tape{new(Tape)} })
	f("closed by the server|broken pipe|reset by peer", func(*Config) {})
}

func TestBurstsAreOfOneTick(t *testing.T) {
	p := &pace{cfg: &Config{PerSec: 64000, Burst: 100}, tick: int64(time.Millisecond / 4), total: 100}
	f := func(sent int64, room, burst, want int) {
		t.Helper()
		if p.sent, p.cfg.Burst = sent, burst; p.together(room) != want {
			t.Errorf("%d of %d are sent together after %d with room for %d, want %d", p.together(room), p.total, sent, room, want)
		}
	}
	f(0, 64, 100, 16)
	f(0, 64, 0, 1)
	f(0, 64, 5, 5)
	f(0, 7, 100, 7)
	f(10, 64, 100, 6) // the rest of its tick
	f(96, 64, 100, 4) // the end of the run
}
