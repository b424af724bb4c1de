package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
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

var scenes = []scene{
	{"half-open", halfOpen},
	{"never-reads", neverReads},
	{"deaf-subscriber", func(addr string, lasting time.Duration) (string, error) {
		return deafSubscriber(addr, lasting, 100_000)
	}},
	{"bursts", bursts},
	{"deep-nesting", deepNesting},
}

func getRequest() []byte {
	return load.AppendRequest(nil, "attack", "kernel", "GetProcess", load.Field{Key: "pid", Value: processID(0)})
}

// expect returns a check that a frame came and is of the wanted type.
func expect(want byte) func(typ byte, payload []byte, err error) error {
	return func(typ byte, payload []byte, err error) error {
		if err == nil && typ != want {
			err = fmt.Errorf("cannot take frame 0x%02X %q where 0x%02X is due", typ, payload[:min(len(payload), 200)], want)
		}
		return err
	}
}

// halfOpen announces 5 MiB on each of 1000 connections and sends five bytes of it: the server must
// take memory as bytes arrive, never as announced (kernel-ipc §2.2).
func halfOpen(addr string, lasting time.Duration) (string, error) {
	const conns = 1000
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return "", fmt.Errorf("cannot open connection %d: %w", len(open), err)
		}
		open = append(open, c)
		if _, err := c.Write([]byte{0x00, 0x50, 0x00, 0x00, load.Request, 0x84, 0xa2, 'i', 'd'}); err != nil {
			return "", fmt.Errorf("cannot send a part of a frame: %w", err)
		}
	}
	time.Sleep(lasting)
	return fmt.Sprintf("%d connections", len(open)), nil
}

// neverReads sends requests without end and takes no reply: the server must stop reading
// (kernel-ipc §2.5) or close, so the client's writes must block or fail long before the limit.
func neverReads(addr string, lasting time.Duration) (string, error) {
	const limit = 1_000_000
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("cannot connect: %w", err)
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
func deafSubscriber(addr string, lasting time.Duration, events int) (string, error) {
	c, err := load.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	types := load.Field{Key: "event_types", Value: []string{"hostile.event"}}
	subscribe := load.AppendRequest(nil, "deaf", "commbus", "Subscribe", types, load.Field{Key: "ack", Value: true})
	if err := expect(load.Chunk)(c.Exchange(subscribe)); err != nil {
		return "", fmt.Errorf("cannot subscribe: %w", err)
	}
	payload := `{"filler":"` + string(bytes.Repeat([]byte{'x'}, 500)) + `"}`
	tape := new(load.Tape)
	for range events / 8 {
		tape.Add(0, load.AppendRequest(nil, "pub", "commbus", "Publish", load.Field{Key: "event_type", Value: "hostile.event"},
			load.Field{Key: "payload", Value: payload}, load.Field{Key: "source", Value: "hostile"}))
	}
	start := time.Now()
	for range 8 {
		if err := load.SendOnce(addr, load.Kernel, []*load.Tape{tape}, 64); err != nil {
			return "", fmt.Errorf("cannot publish: %w", err)
		}
	}
	took := time.Since(start)
	time.Sleep(lasting - took)
	return fmt.Sprintf("%d events of 500 bytes in %v", events, took.Round(time.Millisecond)), nil
}

// bursts writes 4 × 256 requests at once on each of 16 connections, again and again: one connection
// must not hold an event loop (kernel-ipc §2.5).
func bursts(addr string, lasting time.Duration) (string, error) {
	const conns, frames = 16, 4 * 256
	var total atomic.Uint64
	err := concurrently(conns, addr, func(c *load.Client) error {
		burst := bytes.Repeat(getRequest(), frames)
		for end := time.Now().Add(lasting); time.Now().Before(end); {
			if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				return err
			}
			if _, err := c.Write(burst); err != nil {
				return fmt.Errorf("cannot write a burst: %w", err)
			}
			for range frames {
				if err := expect(load.Response)(c.Next()); err != nil {
					return err
				}
			}
			total.Add(frames)
		}
		return nil
	})
	return fmt.Sprintf("%d requests in bursts of %d", total.Load(), frames), err
}

// nested returns a request whose payload nests levels deep, the request's map being level one and
// its body level two.
func nested(levels int) []byte {
	inner := bytes.Repeat([]byte{0x91}, levels-3)
	return load.AppendRequest(nil, "deep", "kernel", "GetProcess", load.Field{Key: "pid", Value: load.Raw(append(inner, 0x90))})
}

// deepNesting sends payloads of 513 levels, and frames of the largest size that nest to their end:
// each must be refused (kernel-ipc §3.3) and the connection must stay usable.
func deepNesting(addr string, lasting time.Duration) (string, error) {
	const conns, perWrite = 16, 64
	var total atomic.Uint64
	largest := nested(maxPayload - 100)
	var turn atomic.Int64
	err := concurrently(conns+1, addr, func(c *load.Client) error {
		batch, n := bytes.Repeat(nested(513), perWrite), perWrite
		if turn.Add(1) == 1 {
			batch, n = largest, 1
		}
		for end := time.Now().Add(lasting); time.Now().Before(end); total.Add(uint64(n)) {
			if err := refusedAll(c, batch, n); err != nil {
				return err
			}
		}
		if err := expect(load.Response)(c.Exchange(getRequest())); err != nil {
			return fmt.Errorf("cannot use the connection afterwards: %w", err)
		}
		return nil
	})
	return fmt.Sprintf("%d payloads refused", total.Load()), err
}

// maxPayload is the largest payload of a frame (kernel-ipc §2.1).
const maxPayload = 5<<20 - 1

// refusedAll writes batch and takes n replies, each an ERROR frame about the MessagePack.
func refusedAll(c *load.Client, batch []byte, n int) error {
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write(batch); err != nil {
		return fmt.Errorf("cannot write deep payloads: %w", err)
	}
	for range n {
		typ, payload, err := c.Next()
		if err != nil {
			return err
		}
		if typ != load.Error || !bytes.Contains(payload, []byte("Invalid msgpack: ")) {
			return fmt.Errorf("cannot take frame 0x%02X %q: a payload nested too deep must be refused", typ, payload[:min(len(payload), 200)])
		}
	}
	return nil
}

// concurrently runs work on n connections and returns the first error.
func concurrently(n int, addr string, work func(c *load.Client) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		c, err := load.Dial(addr)
		if err != nil {
			errs[i] = err
			break
		}
		wg.Go(func() {
			defer c.Close()
			errs[i] = work(c)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
