package ipc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// kept returns a snapshot of a service with something of everything in it, and the records of its
// journal.
func kept(f *testing.F) (snapshot []byte, records [][]byte) {
	f.Helper()
	disk := memstore.New(memstore.Options{})
	r := &rig{t: f}
	r.now.Mono, r.now.Wall = 1e15, 1700000000000
	r.svc = newService(func(_ *Config, c *runtime.Config) {
		c.Journaled, c.Now = true, func() connection.Instant { return r.now }
	})
	f.Cleanup(r.svc.bus.Close)
	files, err := disk.Open()
	if err != nil {
		f.Fatal(err)
	}
	log, err := journal.Open(files, journal.Config{OnDurable: r.svc.rt.Durable})
	if err == nil {
		err = r.svc.rt.Store.Recover(log, store.RecoverOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
	p := r.connect()
	for _, ask := range [][3]string{
		{"kernel", "CreateProcess", `{"pid":"p","user_id":"u"}`}, {"kernel", "CreateProcess", `{"pid":"q","schedule":false}`},
		{"kernel", "GetNextRunnable", `{}`}, {"kernel", "RecordUsage", `{"pid":"p","llm_calls":1}`}, {"kernel", "CheckRateLimit", `{"user_id":"u"}`},
		{"kernel", "SetQuotaDefaults", `{"quota":{"max_llm_calls":7}}`}, {"engine", "CreateEnvelope", `{"raw_input":"hi"}`},
		{"orchestration", "InitializeSession", `{"process_id":"p","envelope":{"envelope_id":"e"},"pipeline_config":{"name":"n","agents":[{"name":"a","default_next":"a"}],` +
			`"max_iterations":9,"max_llm_calls":9,"max_agent_hops":9}}`},
		{"orchestration", "ReportAgentResult", `{"process_id":"p","agent_name":"a","output":{"v":1}}`}, {"kernel", "TerminateProcess", `{"pid":"p"}`},
	} {
		p.send(request("i", ask[0], ask[1], ask[2]))
	}
	if err := r.svc.rt.Store.Snapshot(); err != nil {
		f.Fatal(err)
	}
	if _, err := log.LoadSnapshot(func(in io.Reader, _ journal.Index, _ uint64) error {
		snapshot, err = io.ReadAll(in)
		return err
	}); err != nil {
		f.Fatal(err)
	}
	if err := log.Close(); err != nil {
		f.Fatal(err)
	}
	if files, err = disk.Open(); err != nil {
		f.Fatal(err)
	}
	if log, err = journal.Open(files, journal.Config{}); err != nil {
		f.Fatal(err)
	}
	defer log.Close()
	err = log.Replay(0, func(_ journal.Index, rec []byte) error {
		records = append(records, bytes.Clone(rec))
		return nil
	})
	if err != nil || len(records) < 9 {
		f.Fatal(len(records), err)
	}
	return snapshot, records
}

// FuzzLoad: with any bytes in place of a snapshot and of records, recovery ends with an error or
// with a service that can be asked, and never with a crash.
func FuzzLoad(f *testing.F) {
	snapshot, records := kept(f)
	f.Add(snapshot, []byte{})
	var whole []byte
	for _, rec := range records {
		whole = append(binary.AppendUvarint(whole, uint64(len(rec))), rec...)
		f.Add([]byte{}, bytes.Clone(whole))
	}
	f.Add(snapshot, whole)
	f.Add([]byte("\x01k"), []byte("\x02k\x01\x02o\x90\x01i"))
	f.Fuzz(func(t *testing.T, snapshot, tail []byte) {
		disk := memstore.New(memstore.Options{})
		log := opened(t, disk)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(log.Replay(0, func(journal.Index, []byte) error { return nil }))
		if len(snapshot) > 0 {
			must(log.WriteSnapshot(log.Appended(), func(w io.Writer) error { _, err := w.Write(snapshot); return err }))
		}
		for len(tail) > 0 {
			n, used := binary.Uvarint(tail)
			if used <= 0 || n > uint64(len(tail)-used) {
				break
			}
			log.Append(tail[used : used+int(n)])
			tail = tail[used+int(n):]
		}
		must(log.Close())
		log = opened(t, disk)
		defer log.Close()
		s := newService(func(c *Config, r *runtime.Config) { r.Journaled = true; r.MaxProcesses = 1000 })
		defer s.bus.Close()
		if s.store.Recover(log, store.RecoverOptions{}) != nil {
			return
		}
		if len(fmt.Sprint(s.Stats(), s.store.Digest())) == 0 {
			t.Fatal("nothing to say")
		}
	})
}
