package kernel

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestShardDigestsSeeWhatDigestSees: over random histories they change exactly when Digest does,
// and a kernel that comes back from snapshot and records has the same.
func TestShardDigestsSeeWhatDigestSees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		journal := &tape{}
		cfg := snapshotConfig(journal)
		k, now := New(cfg), at(0)
		whole, parts := k.stateDigest(), k.ShardDigests(nil)
		run := func(deeds []deed) {
			for _, d := range deeds {
				d.do(k, &now)
				nowWhole, nowParts := k.stateDigest(), k.ShardDigests(nil)
				if (nowWhole == whole) != slices.Equal(nowParts, parts) {
					rt.Fatalf("%+v: digest %x to %x, shards\n%x\n%x", d, whole, nowWhole, parts, nowParts)
				}
				whole, parts = nowWhole, nowParts
			}
		}
		run(drawDeeds(rt, "before", 30))
		p := journal.photograph(t, k, nil)
		run(drawDeeds(rt, "after", 20))
		cfg.Shards = 512
		back, err := journal.recovered(p, cfg)
		if err != nil {
			rt.Fatal(err)
		}
		if got := back.ShardDigests(nil); !slices.Equal(got, parts) {
			rt.Fatalf("another state\n%x\n%x", got, parts)
		}
	})
}

// TestShardDigestsTellWhere: a change of one process shows in its part and no other.
func TestShardDigestsTellWhere(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	for _, pid := range []string{"a", "b", "c", "d"} {
		r.mk(pid)
	}
	parts := r.k.ShardDigests(nil)
	if len(parts) != DigestShards+1 {
		t.Fatalf("%d parts", len(parts))
	}
	r.k.RecordUsage(r.now, []byte("c"), nil, &Usage{LLMCalls: 1}, nil)
	differ := 0
	for i, n := range r.k.ShardDigests(nil) {
		if n != parts[i] {
			differ++
		}
	}
	if differ != 1 {
		t.Errorf("%d parts differ after a change of one process", differ)
	}
}

func TestShardDigestsStop(t *testing.T) {
	r := newRig(t, Config{})
	r.mk("a")
	asked := 0
	if got := r.k.ShardDigests(func() bool { asked++; return asked == 3 }); got != nil || asked != 3 {
		t.Errorf("%x after %d questions", got, asked)
	}
}

// TestShardDigestsBesideChanges: they may be asked for while others change the table.
func TestShardDigestsBesideChanges(t *testing.T) {
	k, now := New(Config{Defaults: unlimited(), DequeueLease: time.Minute}), at(0)
	var others sync.WaitGroup
	for w := range 2 {
		others.Go(func() {
			for i := range 300 {
				pid := []byte{byte('a' + w), byte(i)}
				k.Create(now, args(string(pid), Normal), nil)
				k.CheckRate(now, pid, true)
				k.RecordUsage(now, pid, nil, &Usage{LLMCalls: 1}, nil)
			}
		})
	}
	for range 20 {
		k.ShardDigests(nil)
	}
	others.Wait()
	if a, b := k.ShardDigests(nil), k.ShardDigests(nil); !slices.Equal(a, b) {
		t.Errorf("at rest they differ\n%x\n%x", a, b)
	}
}
