package scale

import (
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// small is a run of tiny sizes with the real server.
func small(t *testing.T) *part.Run {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	rig, err := load.NewRig(t.TempDir(), "scale-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rig.Close)
	rig.Binary = kit.Program(t, rig.Dir)
	return &part.Run{Rig: rig, Report: new(part.Report), Options: part.Options{
		Rounds: 1, Rows: 640, Many: 100, Loops: 1, Warmup: 10 * time.Millisecond, Window: 50 * time.Millisecond,
	}}
}

func TestAgainstTheServer(t *testing.T) {
	r := small(t)
	for _, sub := range []struct {
		name string
		f    func(t *testing.T, r *part.Run)
	}{{"fill", fillsTheTable}, {"replace", replacesAtOneSize}, {"subscribe", countsDeliveries}, {"payload", carriesThePayload}, {"ways", startsInAllWays}, {"everything", measuresEverything}} {
		t.Run(sub.name, func(t *testing.T) {
			if sub.name == "everything" && !rounds.Long() {
				t.Skip("measures a little of everything, in the long form")
			}
			sub.f(t, r)
			r.StopAll()
		})
	}
}

func filled(t *testing.T, r *part.Run) *server {
	t.Helper()
	s, err := way{rows: 640}.start(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fillsTheTable(t *testing.T, r *part.Run) {
	s := filled(t, r)
	if f := r.Report.Samples[0]; f.Requests != 640 || f.CPU <= 0 || f.Cell != s.cell(create) {
		t.Errorf("%+v", f)
	}
	reply, err := load.Ask(s.Addr, "kernel", "GetProcess", "pid", load.PID(639))
	if err != nil || reply["pid"] != load.PID(639) {
		t.Errorf("the last row is %v, %v", reply, err)
	}
	if _, err := load.Ask(s.Addr, "kernel", "GetProcess", "pid", load.PID(640)); err == nil {
		t.Error("there is one row more")
	}
}

// replacesAtOneSize: rows that live stay, and of those that ended no more are kept than there is
// room for.
func replacesAtOneSize(t *testing.T, r *part.Run) {
	s := filled(t, r)
	session, err := load.Start(s.config(replaceTapes(4)))
	if err != nil {
		t.Fatal(err)
	}
	kit.Until(t, "more processes ended than are kept", func() bool { return session.Replies() > 4*spareRows })
	if _, err := session.Stop(); err != nil {
		t.Error(err)
	}
	reply, err := load.Ask(s.Addr, "kernel", "GetProcess", "pid", load.PID(0))
	if err != nil || reply["state"] == "TERMINATED" {
		t.Errorf("a row is %v, %v", reply, err)
	}
	if m, err := s.Metrics(); err != nil || m[`trunkline_processes{state="TERMINATED"}`] != spareRows {
		t.Errorf("%v ended processes are kept, %v", m[`trunkline_processes{state="TERMINATED"}`], err)
	}
}

func countsDeliveries(t *testing.T, r *part.Run) {
	s, readers, err := subscribe(r, 3)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := load.Ask(s.Addr, "commbus", "Publish", "event_type", eventType); err != nil {
			t.Fatal(err)
		}
	}
	kit.Until(t, "5 events reach 3 subscribers", func() bool { return readers.Chunks() == 3+15 })
}

func carriesThePayload(t *testing.T, r *part.Run) {
	s, err := way{}.start(r)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	requests, err := carry(s.Addr, n)
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range requests {
		client, err := load.Dial(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		typ, reply, err := client.Exchange(request)
		if err != nil || typ != load.Response {
			t.Fatalf("%s: frame 0x%02X %q, %v", name, typ, reply, err)
		}
		if in := strings.Contains(name, "in"); in != (len(request) > n) || len(request) > 2*n {
			t.Errorf("%s: a request of %d bytes", name, len(request))
		}
		if out := strings.HasSuffix(name, "out"); out != (len(reply) > n) || len(reply) > 2*n {
			t.Errorf("%s: a reply of %d bytes", name, len(reply))
		}
	}
}

// startsInAllWays: a server that has CPUs of its own leaves the others where they were.
func startsInAllWays(t *testing.T, r *part.Run) {
	for _, w := range []way{{name: "anywhere", rows: 640}, {name: "CPUs of its own", rows: 640, apart: true}} {
		s, err := w.start(r)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := s.Metrics(); err != nil || m["go_gc_gogc_percent"] != 100 {
			t.Errorf("%s: GOGC %v, %v", w.name, m["go_gc_gogc_percent"], err)
		}
		if r.CPUs != nil || !w.apart && s.cpus != nil {
			t.Errorf("%s: the load is on %v, later servers on %v", w.name, s.cpus, r.CPUs)
		}
	}
}

// measuresEverything measures a little of all sections: whether they fit together, not what comes
// out.
func measuresEverything(t *testing.T, r *part.Run) {
	r.Report.Samples = nil
	if err := Part().Run(r); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, c := range r.Report.Charts {
		found = append(found, c.Name)
		most := 0.0
		for _, line := range c.Lines {
			for i, p := range line.Points {
				most = max(most, p.Y)
				if i > 0 && p.X <= line.Points[i-1].X || p.Y < 0 && c.Name != "row-memory" && c.Name != "idle" {
					t.Errorf("chart %s, line %s: %+v", c.Name, line.Name, line.Points)
				}
			}
		}
		if most <= 0 && c.Name != "row-memory" && c.Name != "idle" {
			t.Errorf("chart %s shows nothing: %+v", c.Name, c.Lines)
		}
	}
	for _, g := range r.Report.Tables {
		found = append(found, g.Head[0])
		if len(g.Rows) == 0 || len(g.Rows[0]) != len(g.Head) {
			t.Errorf("table %+v", g)
		}
	}
	for _, g := range r.Report.Goals {
		found = append(found, g.ID)
	}
	want := "rows row-memory idle subscribers payload payload-kib load subscribers G5 G10 G10 G7 G7 G9"
	if got := strings.Join(found, " "); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	var cells []string
	spent := 0.0 // a server may take less than a tick of the system in one cell
	for _, c := range goal.Summarize(r.Report.Samples) {
		cells = append(cells, c.String())
		spent += c.Median.CPU
		if c.Median.CPU < 0 || c.Median.Requests == 0 {
			t.Errorf("%s: %+v", c.Cell, c.Median)
		}
	}
	if spent <= 0 {
		t.Error("the servers took no CPU")
	}
	if n := len(tens(64, 640))*6 + 4 + 2*3 + 7*3; len(cells) != n {
		t.Errorf("%d cells, want %d: %q", len(cells), n, cells)
	}
}
