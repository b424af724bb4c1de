package runtime

import (
	"slices"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// recovered returns a runtime on what is on a disk.
func recovered(t *testing.T, disk *memstore.Disk) (*Runtime, *journal.Log) {
	t.Helper()
	r := New(Config{Journaled: true})
	files, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(files, journal.Config{OnDurable: r.Durable})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.OpenRows("", nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Recover(log, store.RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Start()
	return r, log
}

// TestRestart: a runtime that reads the journal of another one has its state.
func TestRestart(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	var digests []Digests
	for life := range 3 {
		r, log := recovered(t, disk)
		if life > 0 {
			d, was := r.Digests(nil), digests[life-1]
			if !slices.Equal(d.Kernel, was.Kernel) || !slices.Equal(d.Orchestration, was.Orchestration) {
				t.Errorf("life %d: %+v, was %+v", life, d, was)
			}
		}
		args := kernel.CreateArgs{PID: []byte{'p', '0' + byte(life)}, UserID: []byte("u"), Priority: kernel.Normal}
		if res, _ := r.Kernel.Create(r.Now(connection.Now()), &args, nil); res != kernel.OK {
			t.Fatalf("life %d: %v", life, res)
		}
		r.Sweep()
		digests = append(digests, r.Digests(nil))
		r.Close()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.CloseRows(); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Equal(digests[0].Kernel, digests[1].Kernel) {
		t.Error("a process more, and the digest is the same")
	}
}

func TestForeignPartition(t *testing.T) {
	for _, c := range []Config{{Partition: 3, Partitions: 3}, {Partition: -1, Partitions: 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("partition %d of %d", c.Partition, c.Partitions)
				}
			}()
			New(c)
		}()
	}
	New(Config{Partition: 2, Partitions: 3}).Close()
}
