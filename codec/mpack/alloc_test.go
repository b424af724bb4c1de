//go:build !race

package mpack

import "testing"

func TestNoAllocs(t *testing.T) {
	payload := AppendRequest(nil, "id-1", "kernel", "RecordUsage", "\x83\xa3pid\xa2p1\xa9llm_calls\x01\xaatokens_out\xcd\x01\x2c")
	bad := append([]byte("\x82\xa2id\xa1x"), 0xc1)
	var sc Scanner
	var r Request
	var v [3]Value
	names := Fields("pid", "llm_calls", "tokens_out")
	p := Process{PID: []byte("p1"), State: "READY", Priority: "NORMAL"}
	out := make([]byte, 0, 4096)
	f := func(name string, run func()) {
		t.Helper()
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s allocates %v times, want 0", name, got)
		}
	}
	f("request", func() { sc.ParseRequest(payload, &r); sc.ParseFields(r.Body, 0, names, v[:]) })
	f("bad request", func() {
		out = AppendError(out[:0], r.ID, "INVALID_ARGUMENT", sc.ParseRequest(bad, &r).Text(), Extras{})
	})
	f("reply", func() { out = AppendProcess(AppendResponseHead(out[:0], r.ID), &p) })
	body := append([]byte(nil), r.Body...)
	list, wide := []byte("\x94\x01\xa1x\x92\x01\x02\xcb\x00\x00\x00\x00\x00\x00\x00\x00"), []byte(nil)
	f("walk", func() {
		m := OpenMap(body)
		for _, _, raw, ok := m.Next(); ok; _, _, raw, ok = m.Next() {
			ReadValue(raw)
		}
		l := OpenList(list)
		for raw, ok := l.Next(); ok; raw, ok = l.Next() {
			KindOf(raw)
		}
		wide = append(wide[:0], "\xdd\x00\x00\x00\x02\xdc\x00\x00\xa1x"...)
		Narrow(wide)
	})
	f("event", func() { out = AppendEvent(out[:0], r.ID, r.Body, 1, r.ID) })
}
