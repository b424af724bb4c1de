package toolhost

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/idem"
)

// diary is a journal whose changes are safe when the test reports it.
type diary struct {
	mu   sync.Mutex
	told uint64
	list []idem.Change
	safe atomic.Uint64
	// flush lets one Barrier go at a time; nil: none waits.
	flush chan struct{}
	// failed is closed when the journal stops; nil: it does not.
	failed chan struct{}
	full   atomic.Bool
}

func (d *diary) journal(c *idem.Change) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told++
	kept := *c
	kept.Result.Output = append([]byte(nil), c.Result.Output...)
	d.list = append(d.list, kept)
	return d.told
}

func (d *diary) Safe() uint64    { return d.safe.Load() }
func (d *diary) Saturated() bool { return d.full.Load() }

func (d *diary) Barrier(ctx context.Context) error {
	d.mu.Lock()
	to := d.told
	d.mu.Unlock()
	if d.flush != nil {
		select {
		case <-d.flush:
		case <-ctx.Done():
			return errors.New("cannot wait")
		case <-d.failed:
			return errors.New("the journal has stopped")
		}
	}
	d.safe.Store(max(d.safe.Load(), to))
	return nil
}

func (d *diary) kinds() (kinds string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.list {
		kinds += d.list[i].Kind.String()[:1]
	}
	return kinds
}

func newDurableRig(t *testing.T, d *diary, replay []idem.Change) *rig {
	var table *idem.Table
	r := newRig(t, func(c *Config) {
		table = idem.New(idem.Config{Now: func() int64 { return c.Now().Mono }, Journal: d.journal})
		c.Keys, c.Journal = table, d
	})
	for i := range replay {
		if err := table.Apply(&replay[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	table.Recovered()
	return r
}

// A tool runs after its start is safe, and its outcome is shown after that is safe.
func TestDurableOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{flush: make(chan struct{})}
		r := newDurableRig(t, d, nil)
		a, b := r.open(Stdin), r.open(Stdin)
		line := keyed("AID.COUNT.v1", "k", "") // a tool for the loop, but not here
		a.begin(line)
		synctest.Wait()
		r.wantRuns(0)
		if d.kinds() != "s" {
			t.Error(d.kinds())
		}
		d.flush <- struct{}{}
		synctest.Wait()
		r.wantRuns(1)
		if len(a.wake) != 0 || d.kinds() != "sf" || len(r.srv.exec.slots) != 0 {
			t.Errorf("shown too early: %s", d.kinds())
		}
		b.begin(line) // the outcome is there, and is not safe
		synctest.Wait()
		if len(b.wake) != 0 || !b.blocked {
			t.Error("a hit is shown too early")
		}
		d.flush <- struct{}{}
		d.flush <- struct{}{}
		if got := a.end() + b.end(); got != okReply+hitReply {
			t.Error(got)
		}
		b.want(line, hitReply)
		a.want(`{"aid":"AID.COUNT.v1"}`, okReply) // no key: nothing to wait for
		d.full.Store(true)
		a.want(line, fault("overloaded"))
		a.want(`{"aid":"AID.COUNT.v1"}`, okReply)
		d.full.Store(false)
		b.begin(keyed("AID.EXT.v1", "late", "")) // its start is not safe before its deadline
		time.Sleep(DefaultToolTimeout)
		synctest.Wait()
		d.flush <- struct{}{}
		if got := b.end(); !strings.Contains(got, `"type":"timeout"`) {
			t.Error(got)
		}
		if _, failures := r.breaker.State(); failures != 0 {
			t.Errorf("%d failures of a tool that did not run", failures)
		}
		r.wantRuns(3)
	})
}

// TestNothingIsShownOfAFailedJournal: the outcome of a key whose record was lost is not shown, not
// to who ran it and not to who asked for it again.
func TestNothingIsShownOfAFailedJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{flush: make(chan struct{}), failed: make(chan struct{})}
		r := newDurableRig(t, d, nil)
		a, b := r.open(Stdin), r.open(Stdin)
		line := keyed("AID.COUNT.v1", "k", "")
		a.begin(line)
		d.flush <- struct{}{} // its start is safe
		synctest.Wait()
		b.begin(line)
		synctest.Wait()
		close(d.failed)
		synctest.Wait()
		if len(a.wake) != 0 || len(b.wake) != 0 || !a.blocked || !b.blocked {
			t.Error("an outcome is shown that is not safe")
		}
		<-drained(t.Context(), r.srv)
	})
}

// What was begun before a restart is run again if that does no harm; the outcome of the rest is
// unknown.
func TestUnknownOutcome(t *testing.T) {
	first := &diary{}
	r := newDurableRig(t, first, nil)
	p := r.open(Stdin)
	p.ask(keyed("AID.WRITE.v1", "done", ""), keyed("AID.WRITE.v1", "begun", ""), keyed("AID.COUNT.v1", "begun", ""))
	var begun []idem.Change
	for _, c := range first.list {
		if c.Kind == idem.ChangeStarted || len(begun) == 1 {
			begun = append(begun, c) // the first one with its end
		}
	}
	d := &diary{}
	r = newDurableRig(t, d, begun)
	p = r.open(Stdin)
	p.want(keyed("AID.WRITE.v1", "done", ""), hitReply)
	p.want(keyed("AID.WRITE.v1", "begun", `,"inputs":{"x":1}`), conflict("AID.WRITE.v1", "begun"))
	unknown := toolReply("false", "TOOL_ERROR", "{}", unknownOutcome, `,"idempotent_hit":true`+emptyDelta+
		`,"dispatch_error":{"error":true,"aid":"AID.WRITE.v1","type":"exception","detail":"`+unknownOutcome+`"}`)
	p.want(keyed("AID.WRITE.v1", "begun", ""), unknown)
	p.want(keyed("AID.WRITE.v1", "begun", ""), unknown)
	r.wantRuns(0)
	p.want(keyed("AID.COUNT.v1", "begun", ""), okReply)
	p.want(keyed("AID.COUNT.v1", "begun", ""), hitReply)
	r.wantRuns(1)
	if got := d.kinds(); got != "fsf" {
		t.Error(got)
	}
}
