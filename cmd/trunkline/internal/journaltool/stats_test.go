package journaltool

import (
	"context"
	"errors"
	"testing"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/kernel"
)

// mixed makes a lease of every fifth record, and something unknown of one.
func mixed(i int) []byte {
	switch {
	case i == 7:
		return []byte("?")
	case i%5 == 0:
		return kernel.AppendChange([]byte{'k'}, &kernel.Change{Kind: kernel.ChangeLease, PID: []byte("p"), Expiry: 9})
	}
	return usage("p", int64(i))
}

func TestCount(t *testing.T) {
	dir := made(t, plan{groups: 4, record: mixed})
	s, err := Count(t.Context(), dir, time.Now(), nothing{})
	must(t, err)
	want := map[string]uint64{"kernel.usage": 34, "kernel.lease": 9, unreadable: 1}
	if len(s.Kinds) != len(want) || s.Kinds[0].Kind != "kernel.usage" {
		t.Errorf("kinds %+v", s.Kinds)
	}
	sum := uint64(0)
	for _, k := range s.Kinds {
		if want[k.Kind] != k.Records {
			t.Errorf("%s: %d, want %d", k.Kind, k.Records, want[k.Kind])
		}
		sum += k.Bytes
	}
	if s.Records != 44 || s.Claims != 1 || s.Blocks != 9 || s.RecordBytes != sum || s.LargestRecord == 0 || s.LargestBlock < s.LargestRecord || s.Damages != 0 {
		t.Errorf("%+v", s)
	}
	disk := uint64(0)
	for _, f := range s.Files {
		disk += f.Bytes
	}
	if disk != s.DiskBytes || len(s.Files) < 5 {
		t.Errorf("files %+v, %d bytes", s.Files, s.DiskBytes)
	}
}

func TestCountSnapshotsAndTheirAge(t *testing.T) {
	dir := made(t, plan{groups: 6, snapshots: []int{1, 3}})
	s, err := Count(t.Context(), dir, time.Now().Add(time.Hour), nothing{})
	must(t, err)
	if len(s.Snapshots) != 2 || s.Snapshots[1].Index != 45 || s.Snapshots[1].Behind != 22 {
		t.Fatalf("%+v", s.Snapshots)
	}
	if age := s.Snapshots[1].AgeSecs; age < 3600 || age > 3700 {
		t.Errorf("age %d s", age)
	}
	s, err = Count(t.Context(), dir, time.Unix(0, 0), nothing{})
	if err != nil || s.Snapshots[0].AgeSecs != 0 {
		t.Errorf("a clock that went back: %+v, %v", s.Snapshots, err)
	}
}

func TestCountOfADamagedJournal(t *testing.T) {
	dir := made(t, plan{groups: 4, spoil: func(first journal.Index, b []byte) []byte {
		if first == 14 {
			b[60] ^= 1
		}
		return b
	}})
	s, err := Count(t.Context(), dir, time.Now(), nothing{})
	if err != nil || s.Damages != 1 || s.Records != 34 {
		t.Errorf("%+v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Count(ctx, dir, time.Now(), &canceler{n: 2, cancel: cancel}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
