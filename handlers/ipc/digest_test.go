package ipc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit/memstore"
)

// digestReply is what is looked at of a reply.
type digestReply struct {
	ID   string
	OK   bool
	Body struct {
		Processes struct{ Total int }
		Commbus   map[string]int
		Digest    *struct {
			Kernel, Orchestration []string
			Index, Through        uint64
		}
	}
}

// digest asks for a digest and waits for the walk beside the loop.
func (p *peer) digest(body string) (r digestReply) {
	p.rig.t.Helper()
	p.send(request("d", "kernel", "GetSystemStatus", body))
	text := p.beside()
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "02 ")), &r); err != nil || !r.OK {
		p.rig.t.Fatalf("%v: %s", err, text)
	}
	return r
}

// bell is a connection's owner that rings.
type bell chan struct{}

func (b bell) Wake(*connection.Port) {
	select {
	case b <- struct{}{}:
	default:
	}
}

// beside waits for the answer of what runs beside the loop and returns it.
func (p *peer) beside() string {
	p.rig.t.Helper()
	b := make(bell, 1)
	p.port.SetOwner(b)
	defer p.port.SetOwner(nil)
	for {
		p.pump()
		if text := p.next(); text != "" {
			return text
		}
		<-b
	}
}

func TestDigestIsInTheStatus(t *testing.T) {
	r := newRig(t)
	p := r.connect()
	p.call("1", "kernel", "CreateProcess", `{"pid":"p"}`)
	plain := p.call("2", "kernel", "GetSystemStatus", `{}`)
	if got := p.call("2", "kernel", "GetSystemStatus", `{"digest":false}`); got != plain || strings.Contains(got, "digest") {
		t.Errorf("%s, want %s", got, plain)
	}
	got := p.digest(`{"digest":true}`)
	d := got.Body.Digest
	if d == nil || got.ID != "d" || got.Body.Processes.Total != 1 || got.Body.Commbus["events_published"] != 1 {
		t.Fatalf("%+v", got)
	}
	if len(d.Kernel) != kernel.DigestShards+1 || len(d.Orchestration) != orchestration.DigestShards || d.Index != 0 || d.Through != 0 {
		t.Errorf("%+v", d)
	}
	for _, n := range slices.Concat(d.Kernel, d.Orchestration) {
		if len(n) != 16 || strings.Trim(n, "0123456789abcdef") != "" {
			t.Errorf("%q is no number of 16 digits", n)
		}
	}
	if again := p.digest(`{"digest":true}`).Body.Digest; !slices.Equal(again.Kernel, d.Kernel) {
		t.Errorf("it changed by looking: %v, %v", d, again)
	}
	p.call("3", "kernel", "RecordUsage", `{"pid":"p","llm_calls":1}`)
	if later := p.digest(`{"digest":true}`).Body.Digest; slices.Equal(later.Kernel, d.Kernel) || !slices.Equal(later.Orchestration, d.Orchestration) {
		t.Errorf("a change does not show where it belongs: %v, %v", d, later)
	}
	if got := p.call("4", "kernel", "GetSystemStatus", `{"digest":1}`); !strings.Contains(got, "INVALID_ARGUMENT") || !strings.Contains(got, "digest must be a boolean") {
		t.Error(got)
	}
}

// TestDigestAfterRecovery: it is the same after a restart, and shows how far the journal was.
func TestDigestAfterRecovery(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	for i := range 10 {
		p.send(request("i", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d"}`, i)))
		p.send(request("i", "orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":"p%d","pipeline_config":`+
			`{"name":"n","agents":[{"name":"s","agent":"a"}]},"envelope":{"envelope_id":"e%d"}}`, i, i)))
		r.settled(p)
	}
	p.out = nil
	before := p.digest(`{"digest":true}`).Body.Digest
	if before.Index == 0 || before.Index != r.log.Appended() || before.Through != before.Index {
		t.Errorf("%+v, want index %d", before, r.log.Appended())
	}
	disk.CrashHard()
	back := newJournaledRig(t, disk, nil)
	defer back.log.Close()
	after := back.connect().digest(`{"digest":true}`).Body.Digest
	if !slices.Equal(after.Kernel, before.Kernel) || !slices.Equal(after.Orchestration, before.Orchestration) {
		t.Errorf("%+v, want %+v", after, before)
	}
}

// TestDigestRunsBesideTheLoop: it holds up its own connection only, shares the bound of listings,
// and is refused beyond it.
func TestDigestRunsBesideTheLoop(t *testing.T) {
	r := newRig(t, func(c *Config, r *runtime.Config) { r.KernelQueueCapacity = 1 })
	for range maxWalkers {
		r.svc.walkers <- struct{}{} // no one walks
	}
	var waiting []*peer
	for range 1 + maxWalkers {
		p := r.connect()
		p.send(append(request("1", "kernel", "GetSystemStatus", `{"digest":true}`), request("2", "kernel", "GetProcessCounts", `{}`)...))
		if len(p.out) > 0 || !p.s.Load().Busy {
			t.Fatalf("answered: %q", p.out)
		}
		waiting = append(waiting, p)
	}
	q := r.connect()
	if got := q.call("1", "kernel", "GetSystemStatus", `{"digest":true}`); !strings.Contains(got, "RESOURCE_EXHAUSTED") || !strings.Contains(got, "queue is full") {
		t.Error(got)
	}
	if got := q.call("2", "kernel", "GetSystemStatus", `{}`); !strings.HasPrefix(got, "02 ") {
		t.Error(got)
	}
	waiting[0].s.Closed() // no one reads this one
	for range maxWalkers {
		<-r.svc.walkers
	}
	for _, p := range waiting[1:] {
		if got := p.beside(); !strings.Contains(got, `"digest"`) {
			t.Error(got)
		}
		if p.send(nil) == connection.Blocked {
			t.Error("still blocked")
		}
		if got := p.next(); !strings.Contains(got, "queue_depth") {
			t.Errorf("what came behind it: %s", got)
		}
	}
}
