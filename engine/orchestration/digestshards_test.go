package orchestration

import (
	"fmt"
	"slices"
	"testing"

	"trunkline/codec/wire"
)

// TestShardDigestsTellWhere: a change of one entry shows in one part; looking changes none; an
// engine that did the same has the same.
func TestShardDigestsTellWhere(t *testing.T) {
	r := newRig(t, Config{})
	steps := []func(r *rig) wire.Code{
		func(r *rig) wire.Code { return r.init("p1", envOf("e1", ""), false) },
		func(r *rig) wire.Code { return r.init("p2", envOf("e2", ""), false) },
		func(r *rig) wire.Code { return r.report("p1", "a1", `{"v":1}`) },
		func(r *rig) wire.Code { return r.report("p1", "a2", `{"v":2}`) },
		func(r *rig) wire.Code {
			_, code := r.o.CreateEnvelope(&r.c, &CreateArgs{RawInput: []byte("x")}, nil)
			return code
		},
	}
	last := r.o.ShardDigests(&r.c, nil)
	if len(last) != DigestShards || slices.ContainsFunc(last, func(n uint64) bool { return n != 0 }) {
		t.Fatalf("of nothing: %x", last)
	}
	for i, step := range steps {
		if code := step(r); code != wire.OK {
			t.Fatalf("step %d: %v %s", i, code, r.c.Msg)
		}
		now := r.o.ShardDigests(&r.c, nil)
		if again := r.o.ShardDigests(&r.c, nil); !slices.Equal(now, again) {
			t.Errorf("step %d: two looks differ\n%x\n%x", i, now, again)
		}
		differ := 0
		for part := range now {
			if now[part] != last[part] {
				differ++
			}
		}
		if differ != 1 {
			t.Errorf("step %d: %d parts differ", i, differ)
		}
		last = now
	}
	a, b := newRig(t, Config{}), newRig(t, Config{})
	for _, step := range steps[:4] { // the last one makes an id of its own
		step(a)
		step(b)
	}
	if a, b := a.o.ShardDigests(&a.c, nil), b.o.ShardDigests(&b.c, nil); !slices.Equal(a, b) {
		t.Errorf("the same steps give\n%x\n%x", a, b)
	}
}

func TestShardDigestsStop(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 3 {
		r.init(fmt.Sprint("p", i), envOf(fmt.Sprint("e", i), ""), false)
	}
	f := func(after int, stopped bool) {
		t.Helper()
		asked := 0
		got := r.o.ShardDigests(&r.c, func() bool { asked++; return asked > after })
		if (got == nil) != stopped {
			t.Errorf("stop after %d questions: %x after %d", after, got, asked)
		}
	}
	f(0, true)
	f(2, true)
	f(3, false)
}
