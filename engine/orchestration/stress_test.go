package orchestration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/envelope"
)

// crowd is many goroutines that do everything at once to few processes and envelopes.
type crowd struct {
	o    *Engine
	ids  []string // of stored envelopes
	mu   sync.Mutex
	seen map[wire.Code]int
}

// member is one of them.
type member struct {
	*crowd
	c   Call
	rnd *rand.Rand
	out []byte
}

func (m *member) pid() []byte { return fmt.Appendf(nil, "p%d", m.rnd.IntN(6)) }

// env is an envelope, large now and then; it waits if asks is set.
func (m *member) env(more string) string {
	m.mu.Lock()
	id := m.ids[m.rnd.IntN(len(m.ids))]
	m.mu.Unlock()
	return envOf(id, more+`,"raw_input":"`+strings.Repeat("x", m.rnd.IntN(4)*m.rnd.IntN(2000))+`"`)
}

func (m *member) some(list ...string) string { return list[m.rnd.IntN(len(list))] }

// act does one thing.
func (m *member) act() (code wire.Code) {
	o, c := m.o, &m.c
	c.Now.Mono += int64(m.rnd.IntN(int(2 * time.Second)))
	c.Now.Wall = c.Now.Mono / 1e6
	switch m.rnd.IntN(16) {
	case 0, 1:
		_, code = o.Initialize(c, &InitArgs{ProcessID: m.pid(), Config: asMap(around), Envelope: asMap(m.env(m.some("", asks))),
			Force: m.rnd.IntN(2) == 0}, m.out)
	case 2:
		_, code = o.ExecutePipeline(c, asMap(envOf(string(m.pid()), m.some("", asks))), asMap(around), m.out)
	case 3, 4:
		_, code = o.Next(c, m.pid(), m.out)
	case 5, 6, 7, 8:
		_, code = o.Report(c, &Report{ProcessID: m.pid(), AgentName: []byte(m.some("a1", "a2")), Failed: m.rnd.IntN(8) == 0,
			Output: pack(`{"v":"` + strings.Repeat("y", m.rnd.IntN(4)*m.rnd.IntN(2000)) + `"}`)}, m.out)
	case 9:
		_, code = o.State(c, m.pid(), m.out)
	case 10, 11:
		_, code = o.UpdateEnvelope(c, asMap(m.env(m.some("", asks, `,"terminated":true`))), m.out)
	default:
		m.seldom()
	}
	return code
}

// seldom does what makes and ends sessions and envelopes.
func (m *member) seldom() {
	o, c := m.o, &m.c
	switch m.rnd.IntN(8) {
	case 0:
		out, code := o.CreateEnvelope(c, &CreateArgs{RawInput: []byte("new")}, nil)
		if code == wire.OK && c.env.Decode(envelope.MsgPack, out) == nil {
			m.mu.Lock()
			m.ids[m.rnd.IntN(len(m.ids))] = string(c.env.Text(envelope.EnvelopeID))
			m.mu.Unlock()
		}
	case 1:
		o.CloneEnvelope(c, asMap(m.env(m.some("", `,"terminated":true`))), m.out)
	case 2:
		o.Cancel(m.pid())
	case 3, 4:
		pid := m.pid()
		o.Cancel(pid)
		o.ProcessEnded(c, pid)
	case 5:
		o.ProcessRemoved(m.pid())
	case 6:
		o.Sweep(c.Now)
	default:
		o.CurrentStage(m.pid())
		o.Stats()
		o.Active()
		c.Release()
	}
}

// TestStress does everything at once and then counts what is left.
func TestStress(t *testing.T) {
	const members, acts = 6, 1000
	f := func(name string, cfg Config, exact bool) {
		t.Run(name, func(t *testing.T) {
			cfg.SessionRetention, cfg.EnvelopeRetention = 20*time.Second, 60*time.Second
			r := newRig(t, cfg)
			k := &crowd{o: r.o, seen: map[wire.Code]int{}}
			for range 2 {
				id, code := r.create("")
				r.ok(code)
				k.ids = append(k.ids, id)
			}
			var wg sync.WaitGroup
			for i := range members {
				m := &member{crowd: k, rnd: rand.New(rand.NewPCG(uint64(i), 7)), c: Call{Now: r.c.Now}}
				wg.Go(func() { m.run(t, acts) })
			}
			wg.Wait()
			for _, code := range []wire.Code{wire.OK, wire.NotFound, wire.FailedPrecondition, wire.InvalidArgument} {
				if k.seen[code] == 0 {
					t.Errorf("never answered %s: %v", code, k.seen)
				}
			}
			for pid := range 6 { // what was answered is taken
				r.o.State(&r.c, fmt.Appendf(nil, "p%d", pid), nil)
			}
			r.audit(exact)
			r.o.Sweep(connection.Instant{Mono: 1 << 60, Wall: 1 << 60})
			r.empty()
		})
	}
	f("roomy", Config{}, true)
	f("few", Config{MaxSessions: 3, MaxEnvelopes: 2}, true)
	f("small", Config{MaxSessionBytes: 12_000, MaxEnvelopeBytes: 9_000}, false)
}

func (m *member) run(t *testing.T, acts int) {
	seen := map[wire.Code]int{}
	for range acts {
		code := m.act()
		if seen[code]++; code == wire.Internal {
			t.Errorf("%s", m.c.Msg)
			return
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for code, n := range seen {
		m.seen[code] += n
	}
}
