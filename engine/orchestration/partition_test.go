package orchestration

import (
	"testing"

	"trunkline/codec/wire"
)

// TestOwnIdentifiers: a new envelope has an identifier that the partition owns.
func TestOwnIdentifiers(t *testing.T) {
	owns := func(id []byte) bool { return id[len(id)-1]%4 == 1 }
	r := newRig(t, Config{Owns: owns})
	for range 20 {
		id, code := r.create("")
		r.ok(code)
		if !owns([]byte(id)) {
			t.Errorf("%s is not its own", id)
		}
	}
}

// TestResume: sessions go on whose envelope is stored elsewhere, and nothing is stored.
func TestResume(t *testing.T) {
	r := newRig(t, Config{})
	r.ok(r.init("waits", envOf("e", asks), false))
	r.ok(r.init("other", envOf("f", asks), false))
	resume := func(env string) wire.Code {
		out, code := r.o.Resume(&r.c, asMap(env), nil)
		if code == wire.OK && string(out) != "\x80" {
			t.Errorf("the body is %x", out)
		}
		return code
	}
	r.ok(resume(`{"envelope_id":"e","interrupt_pending":true}`))
	r.want(r.report("waits", "a1", `{"v":1}`), wire.FailedPrecondition)
	r.ok(resume(`{"envelope_id":"e"}`))
	r.ok(r.report("waits", "a1", `{"v":1}`))
	r.want(r.report("other", "a1", `{"v":1}`), wire.FailedPrecondition)
	r.ok(resume(`{"envelope_id":"e"}`)) // once more, with no session that waits
	r.want(resume(`{"x":1}`), wire.InvalidArgument)
	if n := r.o.Stats().Envelopes; n != 0 {
		t.Errorf("%d envelopes are stored", n)
	}
	r.audit(true)
}
