//go:build !race

package app

import (
	"io"
	"log/slog"
	"testing"

	"trunkline/cmd/trunkline/internal/toolset"
	"trunkline/engine/bus"
	"trunkline/engine/connection"
	"trunkline/handlers/toolhost"
)

// TestNoAllocsWithoutSubscriber: a bus without subscribers costs a call nothing but the question
// (toolhost §10).
func TestNoAllocsWithoutSubscriber(t *testing.T) {
	b := bus.New(bus.Config{EventBody: eventText})
	defer b.Close()
	set, err := toolset.Open(toolset.Options{Builtins: true, Events: emitTo(b)})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	c := settings(t).Toolhost.Config
	c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if c, err = set.ServerConfig(c); err != nil {
		t.Fatal(err)
	}
	c.Events, c.EventsWanted = emitTo(b), b.Wants
	srv := toolhost.New(c)
	defer srv.Close()
	s := srv.OpenStdin(connection.NewPort(1, "stdin"))
	defer s.Closed()
	in, out := []byte(`{"aid":"AID.NOOP.v1"}`+"\n"+`{"aid":"AID.NOOP.v1","request_id":7}`+"\n"), make([]byte, 0, 4096)
	f := func(want int64) {
		t.Helper()
		before := b.Stats().EventsPublished
		if n := testing.AllocsPerRun(200, func() { _, out, _ = s.Feed(in, out[:0], connection.Instant{}) }); n != 0 && want == 0 {
			t.Errorf("%v allocations, want 0", n)
		}
		if got := b.Stats().EventsPublished - before; got != want {
			t.Errorf("%d events published, want %d: %s", got, want, out)
		}
	}
	f(0)
	b.Subscribe(new(asleep), []string{"process.created"}, 0)
	f(0)
	sub := b.Subscribe(new(asleep), []string{"toolhost.tool.finished"}, 0)
	f(2 * 201) // AllocsPerRun warms up once
	sub.Discard()
	f(0)
}
