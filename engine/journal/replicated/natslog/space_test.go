package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"trunkline/engine/journal/replicated"
	"trunkline/engine/journal/replicated/natslog"
	"trunkline/fuzz/kit/natstest"
)

// TestNoRoom: a server and an account that may store no more refuse what is appended for want of
// room. Another server may take it, so that it may not be stored is not taken from that.
func TestNoRoom(t *testing.T) {
	const limit = 1 << 20
	for name, limits := range map[string]struct{ server, account int64 }{"server": {limit, -1}, "account": {1 << 30, limit}} {
		t.Run(name, func(t *testing.T) {
			s, err := server.NewServer(&server.Options{
				ServerName: "n0", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
				JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, JetStreamMaxStore: limits.server, DisableJetStreamBanner: true,
			})
			must(t, err)
			s.Start()
			t.Cleanup(func() {
				s.Shutdown()
				s.WaitForShutdown()
			})
			must(t, s.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": {MaxMemory: -1, MaxStore: limits.account, MaxStreams: -1, MaxConsumers: -1}}))
			nc, err := nats.Connect("", nats.InProcessServer(s))
			must(t, err)
			defer nc.Close()
			l, err := natslog.Open(context.Background(), natslog.Config{Conn: nc, Name: name, Replicas: 1, AnswerWithin: natstest.Patient})
			must(t, err)
			var o replicated.Outcome
			for i := uint64(0); o.Err == nil && i < 8; i++ {
				o = l.Append(block(i, fmt.Sprint(i), make([]byte, limit/4)))()
			}
			if !errors.Is(o.Err, replicated.ErrNoRoom) || errors.Is(o.Err, replicated.ErrNotStored) {
				t.Errorf("beyond the limit: %v", o.Err)
			}
		})
	}
}
