package app

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
	"trunkline/engine/threadstore"
	"trunkline/handlers/console"
	"trunkline/handlers/ipc/ipcclient"
)

// bindTwo returns a server that owns two partitions, whose stores were read.
func bindTwo(t *testing.T) *server {
	t.Helper()
	cfg := settings(t)
	s, err := bind(cfg, Options{Build: obs.ReadBuild("v7", "rev"), Logger: slog.New(slog.DiscardHandler), Banner: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.abort)
	kernel, err := openEndpoint(cfg, s.options)
	if err != nil {
		t.Fatal(err)
	}
	second := &partition{s: s, number: 1}
	second.current.Store(&replica{partition: 1, kernel: kernel})
	s.parts = append(s.parts, second)
	for _, r := range s.replicas() {
		if err := r.kernel.recover(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestConsoleOfPartitions: threads, topics and metrics are those of all partitions that a node
// owns, page by page.
func TestConsoleOfPartitions(t *testing.T) {
	s := bindTwo(t)
	var ids []string
	for p, r := range s.replicas() {
		boss := threadstore.Actor{Workspace: fmt.Sprint("w", p), Agent: "boss", Rank: threadstore.Coordinator}
		for range 3 {
			id, _, refused := r.kernel.rt.Threads.Create(
				&boss,
				&threadstore.NewThread{Title: []byte("title"), Participants: [][]byte{[]byte("boss")}},
				time.Now().UnixMilli(),
			)
			if refused.Code != threadstore.OK {
				t.Fatal(refused)
			}
			ids = append(ids, id)
		}
	}
	want := []string{ids[2], ids[1], ids[0], ids[5], ids[4], ids[3]} // newest first in each
	for limit := 1; limit <= len(ids)+1; limit++ {
		var got []string
		for f := (console.ThreadFilter{Limit: limit, Scan: 100}); ; {
			list := s.console.threads(f)
			for _, l := range list.Threads {
				got = append(got, l.ID)
			}
			if f.Before = list.Next; list.Total != int64(len(ids)) || f.Before == 0 || len(got) > len(ids) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %v, want %v", limit, got, want)
		}
	}
	if list := s.console.threads(console.ThreadFilter{Limit: 9, Scan: 9, Workspace: "w1"}); len(list.Threads) != 3 || list.Scanned != 6 {
		t.Errorf("of one workspace: %+v", list)
	}
	for _, id := range ids {
		if d, err := s.console.thread(id, 0, 1); err != nil || d.ID != id {
			t.Errorf("%+v %v", d, err)
		}
	}

	for p, r := range s.replicas() {
		here, there := net.Pipe()
		go func() { _ = s.console.host.ServeSession(there, "test", r.kernel.svc.Open) }()
		c := ipcclient.New(here)
		t.Cleanup(func() { _ = c.Close() })
		for range p + 1 {
			if _, err := c.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"both", fmt.Sprint("only", p), "process.created"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := func(limit int, more bool, want string) {
		t.Helper()
		list := s.console.topics(limit)
		var got []string
		for _, topic := range list.Topics {
			if topic.Subscribers > 0 {
				got = append(got, fmt.Sprint(topic.Name, " ", topic.Subscribers))
			}
		}
		if strings.Join(got, ", ") != want || list.More != more {
			t.Errorf("topics %v, more %v; want %s, %v", got, list.More, want, more)
		}
	}
	f(9, false, "process.created 2, both 2, only0 1, only1 2")
	f(3, false, "process.created 2, both 2, only0 1, only1 2")

	reg, err := obs.NewRegistry(obs.ReadBuild("v7", "rev"))
	if err != nil {
		t.Fatal(err)
	}
	if err = s.register(reg); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "trunkline_threads" {
			continue
		}
		var got []string
		for _, m := range family.GetMetric() {
			got = append(got, fmt.Sprint(m.GetLabel()[0].GetName(), m.GetLabel()[0].GetValue(), "=", m.GetGauge().GetValue()))
		}
		if text := strings.Join(got, " "); text != "partition0=3 partition1=3" {
			t.Errorf("the metrics have %s", text)
		}
		return
	}
	t.Error("the metrics have no threads")
}
