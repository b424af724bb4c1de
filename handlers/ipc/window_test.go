package ipc

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/journal/memstore"
	"trunkline/engine/link"
)

// TestFullTablesComeBack: while a snapshot is taken, full tables drop entries that were made a moment before. The replay meets the
// beginning of such an entry when the snapshot has its successor already. The start succeeds, and the tables hold what they held.
func TestFullTablesComeBack(t *testing.T) {
	const over = `"terminated":true,"terminal_reason":"COMPLETED"`
	f := func(name string, limits Config, method, body string) {
		t.Run(name, func(t *testing.T) {
			disk := memstore.New(memstore.Options{})
			r := newLimitedRig(t, limits, disk, nil)
			p := r.connect()
			n := 0
			ask := func() {
				t.Helper()
				n++
				p.send(request("1", "engine", method, fmt.Sprintf(body, n)))
				r.settled(p)
				if reply := p.next(); !strings.HasPrefix(reply, "02 ") {
					t.Fatalf("%s %d: %s", method, n, reply)
				}
			}
			ask()
			ask()
			readings, now := 0, r.svc.cfg.Now
			r.svc.cfg.Now = func() link.Instant {
				if readings++; readings == 2 { // the table of processes is written, the others are not
					ask()
					ask()
					ask()
				}
				return now()
			}
			if err := r.svc.Snapshot(); err != nil {
				t.Fatal(err)
			}
			r.svc.cfg.Now = now
			digest := r.svc.Digest()
			if err := r.log.Close(); err != nil {
				t.Fatal(err)
			}
			back := newLimitedRig(t, limits, disk, nil)
			defer back.log.Close()
			if got := back.svc.Digest(); got != digest {
				t.Errorf("digest %x, was %x: %+v, was %+v", got, digest, back.svc.orch.Stats(), r.svc.orch.Stats())
			}
		})
	}
	f("envelopes", Config{MaxEnvelopes: 2}, "CloneEnvelope", `{"envelope":{"raw_input":"%d",`+over+`}}`)
	f("sessions", Config{MaxSessions: 2}, "ExecutePipeline",
		`{"pipeline_config":{"name":"x","agents":[{"name":"s","agent":"a"}]},"envelope":{"envelope_id":"e%d",`+over+`}}`)
}
