package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/cluster/placement"
	"trunkline/handlers/ipc/ipcclient"
)

// TestClusterHandOverRefusals: a client sends changes one behind the other while their partition
// moves. Each is answered in its order: what the former owner refuses may be repeated,
// nothing that was sent behind it takes effect, and then the connection ends.
func TestClusterHandOverRefusals(t *testing.T) {
	besideOthers(t)
	r := newClusterRig(t, "cluster.partitions=3", takesOrders(t))
	pid := keysOf(t, placement.Process, 3, 1)[1][0]
	c := &clusterClient{node: r.nodes[0]}
	defer c.close()
	c.surely("a process", func(ctx context.Context, conn *ipcclient.Conn) error {
		_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
		return err
	})
	var acked, unknown, refused int64
	for move := 0; refused == 0; move++ {
		if move == 40 {
			t.Fatal("no move of a partition refuses a request")
		}
		to, _ := r.outsider(1)
		s := startSender(t, r.nodes[0].kernel, pid)
		to.surelyOrder("move", "1", to.id)
		moved := s.acked.Load()
		r.until("the sender goes on, or its connection has ended", func() bool { return s.over.Load() || s.acked.Load() > moved+1000 })
		s.end()
		if s.err != nil && !errors.Is(s.err, io.EOF) && !errors.Is(s.err, syscall.ECONNRESET) && !errors.Is(s.err, net.ErrClosed) {
			t.Error(s.err)
		}
		left := s.sent - s.acked.Load() - s.refused
		t.Logf("%d acknowledged, %d refused, %d without an answer: %v", s.acked.Load(), s.refused, left, s.err)
		acked, refused = acked+s.acked.Load(), s.refused
		if refused == 0 { // else no node has read what is without an answer
			unknown += left
		}
	}
	c.surely("what was counted", func(ctx context.Context, conn *ipcclient.Conn) error {
		q, err := conn.CheckQuota(ctx, pid)
		if n := int64(q.LLMCalls); err == nil && (n < acked || n > acked+unknown) {
			t.Errorf("%d changes took effect, %d were acknowledged, %d are unknown", n, acked, unknown)
		}
		return err
	})
}

// sender is a client that sends changes until its connection ends.
type sender struct {
	net.Conn
	sent, refused int64 // when it has ended
	acked         atomic.Int64
	over          atomic.Bool
	err           error
	tasks         sync.WaitGroup
}

// startSender starts one, which was answered when startSender returns.
func startSender(t *testing.T, addr, pid string) *sender {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &sender{Conn: nc}
	t.Cleanup(s.end)
	body := mpack.AppendInt(mpack.AppendStr(mpack.AppendStr(mpack.AppendStr(mpack.AppendMap(nil, 2), "pid"), pid), "llm_calls"), 1)
	s.tasks.Go(func() {
		for err := error(nil); err == nil; s.sent++ {
			_, err = nc.Write(frame.Append(nil, frame.Request, mpack.AppendRequest(nil, fmt.Sprint(s.sent), "kernel", "RecordUsage", string(body)), nil))
		}
	})
	s.tasks.Go(func() {
		s.err = s.read()
		s.over.Store(true)
		_ = nc.Close()
	})
	(&clusterRig{t: t}).until("the sender is answered", func() bool { return s.over.Load() || s.acked.Load() > 0 })
	return s
}

// end ends the sender.
func (s *sender) end() {
	_ = s.Close()
	s.tasks.Wait()
}

// read reads answers until the connection ends.
func (s *sender) read() error {
	refusal := mpack.AppendError(nil, nil, "UNAVAILABLE", "No node serves the partition now; try again", mpack.Extras{Retryable: true})
	refusal = refusal[bytes.Index(refusal, []byte("\xa2ok")):]
	for in := bufio.NewReader(s); ; {
		prefix, err := in.Peek(frame.PrefixSize)
		if err != nil {
			return err
		}
		answer := make([]byte, frame.Len(prefix))
		if _, err := io.ReadFull(in, answer); err != nil {
			return err
		}
		id := mpack.AppendStr([]byte("\x83\xa2id"), fmt.Sprint(s.acked.Load()+s.refused))
		switch rest, inOrder := bytes.CutPrefix(answer[frame.HeaderSize:], id); {
		case !inOrder:
			return fmt.Errorf("out of order: %q", answer)
		case frame.Type(answer[frame.PrefixSize]) == frame.Response && s.refused == 0:
			s.acked.Add(1)
		case bytes.Equal(rest, refusal):
			s.refused++
		default:
			return fmt.Errorf("after %d refusals: %q", s.refused, answer)
		}
	}
}
