package hostile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/load"
)

// scene is one attack. It runs for about the given time, leaves no connection behind, and returns a
// note for the report; an error means that the server did not answer the attack as the protocol
// asks.
type scene struct {
	name   string
	attack func(addr string, lasting time.Duration) (note string, err error)
}

// scenes are all of them, in the order of the play.
func scenes() []scene {
	return []scene{{"half-open", halfOpen}, {"never-reads", neverReads}, {"deaf-subscriber", deafSubscriber(100_000)}, {"bursts", bursts}, {"deep-nesting", deepNesting}}
}

func getRequest() []byte { return load.RowRequest("GetProcess", 0) }

// halfOpen announces 5 MiB on each of 1000 connections and sends five bytes of it: the server must
// take memory as bytes arrive, never as announced (kernel-ipc §2.2).
func halfOpen(addr string, lasting time.Duration) (string, error) {
	const conns = 1000
	for i := range conns {
		c, err := load.Dial(addr)
		if err != nil {
			return "", fmt.Errorf("cannot open connection %d: %w", i, err)
		}
		defer c.Close()
		if _, err := c.Write([]byte{0x00, 0x50, 0x00, 0x00, load.Request, 0x84, 0xa2, 'i', 'd'}); err != nil {
			return "", fmt.Errorf("cannot send a part of a frame: %w", err)
		}
	}
	time.Sleep(lasting)
	return fmt.Sprintf("%d connections", conns), nil
}

// neverReads sends requests without end and takes no reply: the server must stop reading
// (kernel-ipc §2.5) or close, so the client's writes must block or fail long before the limit.
func neverReads(addr string, lasting time.Duration) (string, error) {
	const limit = 1_000_000
	c, err := load.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	const perWrite = 1000
	batch := bytes.Repeat(getRequest(), perWrite)
	start, sent := time.Now(), 0
	for sent < limit {
		if err := c.SetWriteDeadline(time.Now().Add(lasting)); err != nil {
			return "", err
		}
		if _, err := c.Write(batch); err != nil {
			note := fmt.Sprintf("about %d requests taken, then pushed back", sent)
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				note = fmt.Sprintf("about %d requests taken, closed after %v", sent, time.Since(start).Round(time.Second))
			}
			return note, nil
		}
		sent += perWrite
	}
	return "", fmt.Errorf("%d requests were taken from a client that never reads", sent)
}

// deafSubscriber never reads its stream while many events are published: the events beyond the
// stream's buffer are dropped for it alone (kernel-ipc §4.18), every Publish is answered.
func deafSubscriber(events int) func(addr string, lasting time.Duration) (string, error) {
	const turns = 8
	return func(addr string, lasting time.Duration) (string, error) {
		c, err := load.Dial(addr)
		if err != nil {
			return "", err
		}
		defer c.Close()
		subscribe := load.NewRequest("commbus", "Subscribe", "event_types", []string{"hostile.event"}, "ack", true)
		if err := exchange(c, subscribe, 1, due(load.Chunk)); err != nil {
			return "", fmt.Errorf("cannot subscribe: %w", err)
		}
		publish := load.Publish("hostile.event", 500, "hostile")
		tape := load.TapeOf(slices.Repeat([][]byte{publish}, events/turns)...)
		start := time.Now()
		for range turns {
			if err := load.SendOnce(addr, load.Kernel, []*load.Tape{tape}, 64); err != nil {
				return "", fmt.Errorf("cannot publish: %w", err)
			}
		}
		took := time.Since(start)
		time.Sleep(lasting - took)
		return fmt.Sprintf("%d events of 500 bytes in %v", events, took.Round(time.Millisecond)), nil
	}
}

// bursts writes 4 × 256 requests at once on each of 16 connections, again and again: one connection
// must not hold an event loop (kernel-ipc §2.5).
func bursts(addr string, lasting time.Duration) (string, error) {
	const frames = 4 * 256
	burst := bytes.Repeat(getRequest(), frames)
	total, err := flood(addr, 16, lasting, func(int) ([]byte, int) { return burst, frames }, due(load.Response))
	return fmt.Sprintf("%d requests in bursts of %d", total, frames), err
}

// deepNesting sends payloads of 513 levels, and frames of the largest size that nest to their end:
// each must be refused (kernel-ipc §3.3) and the connection must stay usable.
func deepNesting(addr string, lasting time.Duration) (string, error) {
	const perWrite = 64
	largest, deep := nested(maxPayload-100), bytes.Repeat(nested(513), perWrite)
	total, err := flood(addr, 17, lasting, func(conn int) ([]byte, int) {
		if conn == 0 {
			return largest, 1
		}
		return deep, perWrite
	}, refused)
	return fmt.Sprintf("%d payloads refused", total), err
}

// maxPayload is the largest payload of a frame (kernel-ipc §2.1).
const maxPayload = 5<<20 - 1

// nested returns a request whose payload nests levels deep, the request's map being level one and
// its body level two.
func nested(levels int) []byte {
	inner := bytes.Repeat([]byte{0x91}, levels-3)
	return load.NewRequest("kernel", "GetProcess", "pid", load.Raw(append(inner, 0x90)))
}

// check evaluates a frame that came.
type check func(typ byte, payload []byte) error

// due takes frames of one type.
func due(want byte) check {
	return func(typ byte, payload []byte) error {
		if typ != want {
			return fmt.Errorf("cannot take frame 0x%02X %q where 0x%02X is due", typ, payload[:min(len(payload), 200)], want)
		}
		return nil
	}
}

// refused takes ERROR frames about the MessagePack.
func refused(typ byte, payload []byte) error {
	if typ != load.Error || !bytes.Contains(payload, []byte("Invalid msgpack: ")) {
		return fmt.Errorf("cannot take frame 0x%02X %q: a payload nested too deep must be refused", typ, payload[:min(len(payload), 200)])
	}
	return nil
}

// exchange writes n requests at once and takes as many replies.
func exchange(c *load.Client, requests []byte, n int, take check) error {
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write(requests); err != nil {
		return fmt.Errorf("cannot write %d requests: %w", n, err)
	}
	for range n {
		typ, payload, err := c.Next()
		if err == nil {
			err = take(typ, payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flood exchanges what batch returns on each of some connections, again and again, which have to be
// usable afterwards. It returns how many requests were answered.
func flood(addr string, conns int, lasting time.Duration, batch func(conn int) (requests []byte, n int), take check) (uint64, error) {
	var total atomic.Uint64
	errs := make([]error, conns)
	work := func(conn int) error {
		c, err := load.Dial(addr)
		if err != nil {
			return err
		}
		defer c.Close()
		requests, n := batch(conn)
		for end := time.Now().Add(lasting); time.Now().Before(end); total.Add(uint64(n)) {
			if err := exchange(c, requests, n, take); err != nil {
				return err
			}
		}
		if err := exchange(c, getRequest(), 1, due(load.Response)); err != nil {
			return fmt.Errorf("cannot use the connection afterwards: %w", err)
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return total.Load(), errors.Join(errs...)
}
