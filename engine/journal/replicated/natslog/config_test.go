package natslog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit/natstest"
)

// TestRefusedStreams: a stream that is there with other settings is refused, and the error names
// what is wrong.
func TestRefusedStreams(t *testing.T) {
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	ctx := context.Background()
	c.Open(nc, "good", natstest.Patient)
	js, err := jetstream.New(nc)
	must(t, err)
	good, err := js.Stream(ctx, "good")
	must(t, err)
	for name, change := range map[string]func(c *jetstream.StreamConfig){
		"":                 func(*jetstream.StreamConfig) {},
		"subjects":         func(c *jetstream.StreamConfig) { c.Subjects = []string{c.Name + ".log.>"} },
		"replicas":         func(c *jetstream.StreamConfig) { c.Replicas = 1 },
		"storage":          func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"retention":        func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"discard":          func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"age":              func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"number":           func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
		"size":             func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
		"deleted":          func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"allow_direct":     func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"allow_rollup":     func(c *jetstream.StreamConfig) { c.AllowRollup = true },
		"allow_atomic":     func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false },
		"duplicate_window": func(c *jetstream.StreamConfig) { c.Duplicates = time.Minute },
	} {
		cfg := good.CachedInfo().Config
		cfg.Name = "changed"
		cfg.Subjects = []string{"changed.log.*"}
		change(&cfg)
		_, err := js.CreateStream(ctx, cfg)
		must(t, err)
		_, err = natslog.Open(ctx, natslog.Config{Conn: nc, Name: "changed", AnswerWithin: 5 * time.Second})
		if name == "" && err != nil || name != "" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %v", name, err)
		}
		must(t, js.DeleteStream(ctx, "changed"))
	}
}

// TestConfigLimits: what is beyond a limit is refused before a server is asked.
func TestConfigLimits(t *testing.T) {
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	for name, cfg := range map[string]natslog.Config{
		"no connection": {Name: "x"},
		"no name":       {Conn: nc},
		"long name":     {Conn: nc, Name: strings.Repeat("x", 65)},
		"dot":           {Conn: nc, Name: "a.b"},
		"replicas":      {Conn: nc, Name: "x", Replicas: -1},
		"time":          {Conn: nc, Name: "x", AnswerWithin: -1},
		"partitions":    {Conn: nc, Name: "x", Partitions: -1},
	} {
		if _, err := natslog.Open(context.Background(), cfg); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	c.Open(nc, strings.Repeat("x", 64), natstest.Patient)
}

// TestPartitionsAreFixed: the streams of a cluster with another number of partitions are refused.
// Those of one keep the number, and streams without it are of a cluster with one.
func TestPartitionsAreFixed(t *testing.T) {
	c := natstest.New(t)
	nc := c.Connect(0)
	defer nc.Close()
	open := func(name string, partitions int) error {
		t.Helper()
		_, err := natslog.Open(t.Context(), natslog.Config{Conn: nc, Name: name, AnswerWithin: natstest.Patient, Partitions: partitions})
		return err
	}
	js, err := jetstream.New(nc)
	must(t, err)
	for name, made := range map[string]int{"three": 3, "one": 1, "old": 0} {
		must(t, open(name, made))
		if made == 0 {
			s, err := js.Stream(t.Context(), name)
			must(t, err)
			cfg := s.CachedInfo().Config
			cfg.Metadata = nil
			_, err = js.UpdateStream(t.Context(), cfg)
			must(t, err)
		}
		for _, partitions := range []int{0, 1, 2, 3, 4} {
			want := max(partitions, 1) == max(made, 1)
			if err := open(name, partitions); want && err != nil || !want && !errors.Is(err, natslog.ErrPartitions) {
				t.Errorf("streams %s of %d are asked for with %d: %v", name, made, partitions, err)
			}
		}
	}
}
