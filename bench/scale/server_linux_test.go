package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/load"
)

// small is a run of tiny sizes with the real server.
func small(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	rig, err := load.NewRig(t.TempDir(), "scale-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rig.Close)
	if rig.Binary, err = load.FindBinary("", "../../cmd/trunkline", rig.Dir); err != nil {
		t.Fatal(err)
	}
	o := options{rounds: 1, rows: 640, gcRows: 640, loops: 1, warmup: 10 * time.Millisecond, window: 50 * time.Millisecond, gcWindow: 100 * time.Millisecond}
	return &bench{Rig: rig, o: o, r: newReport(o)}
}

func TestAgainstTheServer(t *testing.T) {
	b := small(t)
	for _, sub := range []struct {
		name string
		f    func(t *testing.T, b *bench)
	}{{"fill", fillsTheTable}, {"replace", replacesAtOneSize}, {"subscribe", countsDeliveries}, {"payload", carriesThePayload},
		{"collect", followsCollections}, {"silent", countsSilentConnections}, {"variants", startsVariants}, {"everything", measuresEverything}} {
		t.Run(sub.name, func(t *testing.T) {
			sub.f(t, b)
			b.StopAll()
		})
	}
}

// counted returns how many processes a server has in a state.
func counted(t *testing.T, s *load.Server, state string) string {
	t.Helper()
	admin, err := adminOf(s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := load.Metrics(admin)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(m[`trunkline_processes{state="`+state+`"}`])
}

func fillsTheTable(t *testing.T, b *bench) {
	f, err := b.fill(640)
	if err != nil {
		t.Fatal(err)
	}
	if f.create <= 0 || f.name() != "640 rows" {
		t.Errorf("%+v", f)
	}
	reply, err := load.Ask(f.Addr, "kernel", "GetProcess", load.Field{Key: "pid", Value: load.PID(639)})
	if err != nil || reply["pid"] != load.PID(639) {
		t.Errorf("the last row is %v, %v", reply, err)
	}
	if _, err := load.Ask(f.Addr, "kernel", "GetProcess", load.Field{Key: "pid", Value: load.PID(640)}); err == nil {
		t.Error("there is one row more")
	}
}

// replacesAtOneSize: rows that live stay, and of those that ended no more are kept than there is
// room for.
func replacesAtOneSize(t *testing.T, b *bench) {
	f, err := b.fill(640)
	if err != nil {
		t.Fatal(err)
	}
	session, err := load.Start(config(f.Server, replaceTapes(4), depth))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "more processes ended than are kept", func() bool { return session.Replies() > 4*spareRows })
	if _, err := session.Stop(); err != nil {
		t.Error(err)
	}
	reply, err := load.Ask(f.Addr, "kernel", "GetProcess", load.Field{Key: "pid", Value: load.PID(0)})
	if err != nil || reply["state"] == "TERMINATED" {
		t.Errorf("a row is %v, %v", reply, err)
	}
	if got, want := counted(t, f.Server, "TERMINATED"), fmt.Sprint(spareRows); got != want {
		t.Errorf("%s ended processes are kept, want %s", got, want)
	}
}

func countsDeliveries(t *testing.T, b *bench) {
	c, err := b.subscribe(3)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	for range 5 {
		reply, err := load.Ask(c.Addr, "commbus", "Publish", load.Field{Key: "event_type", Value: eventType})
		if err != nil {
			t.Fatalf("%v, %v", reply, err)
		}
	}
	until(t, "5 events reach 3 subscribers", func() bool { return c.readers.Chunks() == 15 })
	var lost lostEvents
	samples, err := b.deliver(c, 8, &lost).Measure()
	if err != nil {
		t.Fatal(err)
	}
	s := samples[0]
	if s.Cell != fanCell(3, 8) || s.Requests == 0 || s.CPU <= 0 || lost.published == 0 || float64(s.Requests) > lost.published {
		t.Errorf("%+v, %+v", s, lost)
	}
}

func carriesThePayload(t *testing.T, b *bench) {
	s, err := b.start()
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	for _, c := range carriers() {
		request, err := c.request(s.Addr, n)
		if err != nil {
			t.Fatal(err)
		}
		client, err := load.Dial(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		typ, reply, err := client.Exchange(request)
		if err != nil || typ != load.Response {
			t.Fatalf("%s: frame 0x%02X %q, %v", c.name, typ, reply, err)
		}
		if in := strings.Contains(c.name, "in"); in != (len(request) > n) || len(request) > 2*n {
			t.Errorf("%s: a request of %d bytes", c.name, len(request))
		}
		if out := strings.HasSuffix(c.name, "out"); out != (len(reply) > n) || len(reply) > 2*n {
			t.Errorf("%s: a reply of %d bytes", c.name, len(reply))
		}
	}
}

func followsCollections(t *testing.T, b *bench) {
	g, err := b.traced(640)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.fill(); err != nil {
		t.Fatal(err)
	}
	g.tracer.look()
	before := g.tracer.last
	if err := collect(g.admin); err != nil {
		t.Fatal(err)
	}
	until(t, "the collection is counted", func() bool { g.tracer.look(); return g.tracer.last > before })
	got, err := g.measure("forced", hotTapes(load.Deal(0, 640, conns)), time.Millisecond)
	if err != nil || got.cycles == 0 || got.pause <= 0 || got.share <= 0 || got.sample.Requests == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	// A second look counts nothing twice.
	n := len(g.tracer.found)
	if g.tracer.look(); len(g.tracer.found) != n {
		t.Errorf("%d collections became %d", n, len(g.tracer.found))
	}
	if err := collect(g.admin + "/none"); err == nil || !strings.Contains(err.Error(), "cannot force") {
		t.Errorf("a page that is not there: %v", err)
	}
}

func countsSilentConnections(t *testing.T, b *bench) {
	each, err := b.silent(200)
	if err != nil || each < 0 || each > 1<<20 {
		t.Errorf("%v bytes, %v", each, err)
	}
}

// startsVariants: a server that has CPUs of its own leaves the others where they were.
func startsVariants(t *testing.T, b *bench) {
	for _, v := range variants() {
		s, cpus, err := b.variant(v, 640)
		if err != nil {
			t.Fatal(err)
		}
		admin, err := adminOf(s)
		if err != nil {
			t.Fatal(err)
		}
		m, err := load.Metrics(admin)
		if err != nil || m["go_gc_gogc_percent"] != float64(v.gogc) {
			t.Errorf("%s: GOGC %v, %v", v.name, m["go_gc_gogc_percent"], err)
		}
		if b.CPUs != nil || !v.pin && cpus != nil {
			t.Errorf("%s: the load is on %v, later servers on %v", v.name, cpus, b.CPUs)
		}
	}
}
