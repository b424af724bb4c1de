package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tinylib/msgp/msgp"
	"golang.org/x/sys/unix"

	"trunkline/bench/internal/load"
)

// appendFile is the peer's log: records of a turn are collected and written together.
type appendFile struct {
	fd      int
	size    int64
	buf     []byte
	record  [recordBytes]byte
	since   time.Time    // since when a write is postponed
	syncing *atomic.Bool // nil in always
	failed  chan error
}

func openAppend(path string, everysec bool) (*appendFile, error) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	a := &appendFile{fd: fd, failed: make(chan error, 1)}
	for i := range a.record {
		a.record[i] = byte(i)
	}
	if everysec {
		a.syncing = new(atomic.Bool)
		go a.syncEachSecond()
	}
	return a, nil
}

func (a *appendFile) syncEachSecond() {
	for range time.Tick(time.Second) {
		a.syncing.Store(true)
		err := unix.Fdatasync(a.fd)
		a.syncing.Store(false)
		if err != nil {
			a.failed <- err
			return
		}
	}
}

// add appends a record for each of n requests to what the next commit writes.
func (a *appendFile) add(n int) {
	for range n {
		a.buf = append(a.buf, a.record[:]...)
	}
}

// patience is how many milliseconds the loop may sleep: while a write is postponed, not for ever.
func (a *appendFile) patience() int {
	if len(a.buf) > 0 {
		return 100
	}
	return -1
}

// commit writes what was added and, in always, syncs it.
func (a *appendFile) commit() error {
	select {
	case err := <-a.failed:
		return fmt.Errorf("cannot sync: %w", err)
	default:
	}
	if len(a.buf) == 0 || a.postponed() {
		return nil
	}
	for b := a.buf; len(b) > 0; {
		n, err := unix.Write(a.fd, b)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot append: %w", err)
		}
		b = b[max(n, 0):]
	}
	a.size += int64(len(a.buf))
	a.buf = a.buf[:0]
	if a.syncing == nil {
		if err := unix.Fdatasync(a.fd); err != nil {
			return fmt.Errorf("cannot sync: %w", err)
		}
	}
	if a.size < peerFile {
		return nil
	}
	a.size = 0
	if err := unix.Ftruncate(a.fd, 0); err != nil {
		return fmt.Errorf("cannot begin the file anew: %w", err)
	}
	return nil
}

// postponed reports that the other thread is syncing, when a write would wait for it, and that this
// has not lasted too long.
func (a *appendFile) postponed() bool {
	if a.syncing == nil || !a.syncing.Load() {
		a.since = time.Time{}
		return false
	}
	if a.since.IsZero() {
		a.since = time.Now()
	}
	return time.Since(a.since) < peerPostpone
}

// takeRequests finds the whole frames that b begins with and appends a reply to each to out. ok is
// false for what is no request.
func takeRequests(b []byte, out *[]byte) (used, count int, ok bool) {
	for {
		typ, payload, size, whole, err := load.ParseFrame(b[used:])
		if err != nil {
			return used, count, false
		}
		if !whole {
			return used, count, true
		}
		id, err := requestID(payload)
		if err != nil || typ != load.Request {
			return used, count, false
		}
		*out = appendReply(*out, id)
		used += size
		count++
	}
}

var errNoID = errors.New("a request without an id")

// requestID returns the id of a REQUEST, a sub-slice of its payload.
func requestID(payload []byte) (id []byte, err error) {
	n, b, err := msgp.ReadMapHeaderBytes(payload)
	for ; n > 0 && err == nil; n-- {
		var key []byte
		if key, b, err = msgp.ReadStringZC(b); err != nil {
			break
		}
		if string(key) == "id" {
			id, _, err = msgp.ReadStringZC(b)
			return id, err
		}
		b, err = msgp.Skip(b)
	}
	if err == nil {
		err = errNoID
	}
	return nil, err
}

// appendReply appends the RESPONSE {id, ok: true, body: {}}.
func appendReply(dst, id []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, load.Response)
	dst = msgp.AppendMapHeader(dst, 3)
	dst = msgp.AppendStringFromBytes(msgp.AppendString(dst, "id"), id)
	dst = msgp.AppendBool(msgp.AppendString(dst, "ok"), true)
	dst = msgp.AppendMapHeader(msgp.AppendString(dst, "body"), 0)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}
