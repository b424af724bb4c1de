package ipc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// written makes a disk with a log of the given records, one block after every hundred.
func written(t *testing.T, records [][]byte) *memstore.Disk {
	t.Helper()
	disk := memstore.New(memstore.Options{})
	log := opened(t, disk)
	if err := log.Replay(0, func(journal.Index, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i, rec := range records {
		log.Append(rec)
		if i%100 == 0 {
			if err := log.Barrier(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

func opened(t *testing.T, disk *memstore.Disk) *journal.Log {
	t.Helper()
	store, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(store, journal.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func kernelBytes(c kernel.Change) []byte { return kernel.AppendChange([]byte{kernel.Tag}, &c) }

// creations are n records that make processes with names of their own.
func creations(n int) (records [][]byte) {
	for i := range n {
		records = append(records, kernelBytes(kernel.Change{Kind: kernel.ChangeCreate, PID: fmt.Appendf(nil, "p%d", i), UserID: bytes.Repeat([]byte("u"), 200),
			Seq: uint64(i + 1), State: kernel.Ready, ReadySeq: uint64(i + 1)}))
	}
	return records
}

// TestRecoveryTellsTheFirstError: of several records that do not fit, the first is returned,
// whichever lane meets it first, and the journal is as it was.
func TestRecoveryTellsTheFirstError(t *testing.T) {
	absent := func(i int) []byte {
		return kernelBytes(kernel.Change{Kind: kernel.ChangeUsage, PID: fmt.Appendf(nil, "absent%d", i)})
	}
	session := orchestration.AppendChange([]byte{orchestration.Tag}, &orchestration.Change{Kind: orchestration.ChangeSession, PID: []byte("s"),
		Pipeline: []byte{0x80}, Envelope: []byte{0x80}})
	again := kernelBytes(kernel.Change{Kind: kernel.ChangeCreate, PID: []byte("x"), Seq: 1})
	f := func(name string, want string, bad map[int][]byte) {
		t.Helper()
		records := creations(12000) // some bundles
		for at, rec := range bad {
			records[at] = rec
		}
		disk := written(t, records)
		log := opened(t, disk)
		before := log.Appended()
		err := newRig(
			t,
			func(c *Config, r *runtime.Config) { r.Journaled = true },
		).svc.rt.Store.Recover(
			log,
			store.RecoverOptions{},
		)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		log = opened(t, disk)
		if log.Appended() != before {
			t.Errorf("%s: the journal ends at %d, not at %d", name, log.Appended(), before)
		}
		log.Close()
	}
	// The claim has index 1: record i of the list has index i+2.
	many := map[int][]byte{}
	for i := range 40 {
		many[11000-i*7] = absent(i)
	}
	f("one", "record 502: cannot apply change: usage", map[int][]byte{500: absent(0)})
	f("the last", "record 12001: cannot apply change: usage", map[int][]byte{11999: absent(0)})
	f("many lanes", "record 10729: cannot apply change: usage", many)
	f("a lane before an order", "record 402: cannot apply change: usage", map[int][]byte{400: absent(0), 403: again})
	f("an order before a lane", "record 402: cannot apply change: create", map[int][]byte{400: again, 403: absent(0)})
	f("a session before a lane", "record 402: cannot apply change: session", map[int][]byte{400: session, 403: absent(0)})
	f("a lane before a session", "record 402: cannot apply change: usage", map[int][]byte{400: absent(0), 403: session})
	f("an unknown tag", "record 9: cannot parse change: tag", map[int][]byte{7: []byte("zz")})
	f("nothing", "record 9: cannot parse change: it is empty", map[int][]byte{7: {}})
	f("too long", "record 9: cannot parse change", map[int][]byte{7: append([]byte{kernel.Tag}, make([]byte, store.MaxLaneRecord+1)...)})
	f("as long as fits", "record 9: cannot parse change", map[int][]byte{7: append([]byte{kernel.Tag}, make([]byte, store.MaxLaneRecord-1)...)})
}

// TestRecoveryTellsProgress: it rises in each phase and ends with all of it, though the last
// records are of none.
func TestRecoveryTellsProgress(t *testing.T) {
	disk := written(t, creations(12000))
	recovered := func() (told []store.RecoverProgress, digest uint64) {
		r := newRig(t, func(c *Config, r *runtime.Config) { r.Journaled = true })
		log := opened(t, disk)
		defer log.Close()
		if err := r.svc.rt.Store.Recover(log, store.RecoverOptions{Progress: func(p store.RecoverProgress) { told = append(told, p) }}); err != nil {
			t.Fatal(err)
		}
		if err := r.svc.rt.Store.Snapshot(); err != nil {
			t.Fatal(err)
		}
		return told, r.svc.rt.Store.Digest()
	}
	var digests [3]uint64
	for i := range digests {
		var told []store.RecoverProgress
		told, digests[i] = recovered()
		for j, p := range told {
			if j > 0 && p.Snapshot == told[j-1].Snapshot && p.Done < told[j-1].Done || p.Done > p.Total || j > 0 && p.Snapshot && !told[j-1].Snapshot {
				t.Errorf("%+v after %+v", p, told[j-1])
			}
			if ends := j == len(told)-1 || p.Snapshot != told[j+1].Snapshot; ends && p.Done != p.Total {
				t.Errorf("a phase ends with %+v", p)
			}
		}
		if len(told) < 4 || told[0].Snapshot != (i > 0) {
			t.Errorf("told %+v", told)
		}
	}
	if digests[0] != digests[1] || digests[0] != digests[2] {
		t.Errorf("%x", digests)
	}
}

// TestDamagedSnapshotIsRefused: what is cut, has more behind its end, or is not known is an error,
// and not waited for.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
	log := r.log
	defer log.Close()
	for i := range 300 {
		r.svc.kernel.Create(kernel.Instant{}, &kernel.CreateArgs{PID: fmt.Appendf(nil, "p%d", i), UserID: fmt.Appendf(nil, "u%d", i)}, nil)
	}
	if err := r.svc.rt.Store.Snapshot(); err != nil {
		t.Fatal(err)
	}
	var whole []byte
	if _, err := log.LoadSnapshot(func(from io.Reader, _ journal.Index, _ uint64) (err error) { whole, err = io.ReadAll(from); return err }); err != nil {
		t.Fatal(err)
	}
	load := func(b []byte) error {
		disk := memstore.New(memstore.Options{})
		log := opened(t, disk)
		if err := log.Replay(0, func(journal.Index, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := log.WriteSnapshot(log.Appended(), func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		log = opened(t, disk)
		defer log.Close()
		return newRig(
			t,
			func(c *Config, r *runtime.Config) { r.Journaled = true },
		).svc.rt.Store.Recover(
			log,
			store.RecoverOptions{},
		)
	}
	if err := load(whole); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 1, 5, len(whole) / 2, len(whole) - 1} {
		if err := load(whole[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	f := func(name, want string, b []byte) {
		t.Helper()
		if err := load(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	f("more behind the end", "snapshot record", append(bytes.Clone(whole), 2, 'k', 0))
	f("an unknown tag", "tag", append([]byte{2, 'z', 0}, whole...))
	f("an empty record", "0 bytes", append([]byte{0}, whole...))
	f("a clock of another size", "tag", append([]byte{2, 't', 0}, whole...))
	f("a huge record", "bytes", append([]byte{0xff, 0xff, 0xff, 0x7f}, whole...))
}

// TestSessionAfterTheEndOfItsProcess: a snapshot has the row of a process from before its end, and
// the session that began after it. The replay of the end leaves that session as it was answered,
// and ends the one that had begun before.
func TestSessionAfterTheEndOfItsProcess(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	ask := func(r *journaledRig, p *peer, method, body string) string {
		t.Helper()
		service := "orchestration"
		if strings.HasSuffix(method, "Process") {
			service = "kernel"
		}
		p.send(request("1", service, method, body))
		r.settled(p)
		reply := p.next()
		if !strings.HasPrefix(reply, "02 ") {
			t.Fatalf("%s %s: %s", method, body, reply)
		}
		return reply
	}
	begin := func(pid string) {
		t.Helper()
		ask(r, p, "InitializeSession", `{"process_id":"`+pid+`","envelope":{"envelope_id":"e"},"force":true,"pipeline_config":{"name":"x","agents":[{"name":"s","agent":"a"}]}}`)
	}
	for _, pid := range []string{"again", "over"} {
		ask(r, p, "CreateProcess", `{"pid":"`+pid+`"}`)
		begin(pid)
	}
	readings := 0
	now := r.svc.rt.Config.Now
	r.svc.rt.Config.Now = func() connection.Instant {
		if readings++; readings == 2 { // the table of processes is written, that of sessions is not
			ask(r, p, "TerminateProcess", `{"pid":"again"}`)
			begin("again")
			ask(r, p, "TerminateProcess", `{"pid":"over"}`)
		}
		return now()
	}
	if err := r.svc.rt.Store.Snapshot(); err != nil {
		t.Fatal(err)
	}
	r.svc.rt.Config.Now = now
	states := func(r *journaledRig, p *peer) (all [2]string) {
		for i, pid := range []string{"again", "over"} {
			all[i] = ask(r, p, "GetSessionState", `{"process_id":"`+pid+`"}`)
		}
		return all
	}
	before := states(r, p)
	if err := r.log.Close(); err != nil {
		t.Fatal(err)
	}
	back := newJournaledRig(t, disk, nil)
	defer back.log.Close()
	if after := states(back, back.connect()); after != before {
		t.Errorf("was\n%s\nis\n%s", strings.Join(before[:], "\n"), strings.Join(after[:], "\n"))
	}
	if strings.Contains(before[0], "USER_CANCELLED") || !strings.Contains(before[1], "USER_CANCELLED") {
		t.Errorf("the sessions are %s", before)
	}
}

// TestEndWithoutItsSession: a log that was written before the records of a request shared a block
// may have been cut behind the end of a process. The replay ends its session.
func TestEndWithoutItsSession(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	p.send(request("1", "kernel", "CreateProcess", `{"pid":"p"}`))
	p.send(request("2", "orchestration", "InitializeSession",
		`{"process_id":"p","envelope":{"envelope_id":"e"},"pipeline_config":{"name":"x","agents":[{"name":"s","agent":"a"}]}}`))
	last := r.log.Appended()
	r.svc.kernel.Terminate(r.now, []byte("p"), nil, nil) // without what a request does behind it
	if now := r.log.Appended(); now != last+1 {
		t.Fatalf("the end of the process made %d records", now-last)
	}
	if err := r.log.Close(); err != nil {
		t.Fatal(err)
	}
	back := newJournaledRig(t, disk, nil)
	defer back.log.Close()
	q := back.connect()
	q.send(request("3", "orchestration", "GetSessionState", `{"process_id":"p"}`))
	back.settled(q)
	if got := q.next(); !strings.Contains(got, "USER_CANCELLED") {
		t.Errorf("the session goes on: %s", got)
	}
}
