package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"trunkline/codec/transcode"
)

const (
	// patience is how long a frame may take before it counts as missing, on a machine however busy.
	patience = time.Minute
	// closeWithin is how long a close may take. No timer is shorter by default, so that a setting
	// that is passed over is found.
	closeWithin = 10 * time.Second
	// nothing is what next returns for a frame that did not come.
	nothing = "nothing"
	// endClean and endInside are what next returns for the end of a connection.
	endClean  = "closed"
	endInside = "closed inside a frame"
)

// received is one frame of the server.
type received struct {
	raw  []byte
	twin string // JSON of the payload, "" when it has none
	id   string
	flaw string // how it violates the encoding profile, "" when it does not
}

// wireConn is a client that knows nothing but frames.
type wireConn struct {
	nc      net.Conn
	once    sync.Once
	frames  chan received
	end     string // set before frames is closed
	backlog []received
}

func dial(addr string) (*wireConn, error) {
	network, target := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		network, target = "unix", path
	}
	nc, err := net.Dial(network, target)
	if err != nil {
		return nil, err
	}
	return &wireConn{nc: nc, frames: make(chan received, 4096)}, nil
}

// dialSlow connects a peer that reads little or nothing. Some systems let a socket take tens of MiB
// that it does not read: this one takes little, so that the server has the rest.
func dialSlow(addr string) (*wireConn, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	return c, c.nc.(interface{ SetReadBuffer(int) error }).SetReadBuffer(slowBuffer)
}

// slowBuffer is how many bytes a slow peer's socket takes, about.
const slowBuffer = 64 << 10

// start begins to read.
func (c *wireConn) start() { c.once.Do(func() { go c.readAll() }) }

func (c *wireConn) close() { c.nc.Close() }

func (c *wireConn) closeWrite() { c.nc.(interface{ CloseWrite() error }).CloseWrite() }

func (c *wireConn) readAll() {
	defer close(c.frames)
	for {
		var header [4]byte
		if _, err := io.ReadFull(c.nc, header[:]); err != nil {
			c.end = ending(err)
			return
		}
		n := binary.BigEndian.Uint32(header[:])
		raw := append(make([]byte, 0, 4+n), header[:]...)[:4+n]
		if _, err := io.ReadFull(c.nc, raw[4:]); err != nil {
			c.end = endInside
			return
		}
		c.frames <- inspect(raw)
	}
}

// ending distinguishes an orderly end of the connection from an abrupt one; which of the two a
// refused peer sees depends on what it had still under way, so both are "closed".
func ending(err error) string {
	switch {
	case err == io.EOF, errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return endClean
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nothing
	}
	return err.Error()
}

// next returns the next frame, with byID the next one of that id; why states what came instead.
func (c *wireConn) next(id string, byID bool, wait time.Duration) (f received, why string) {
	for i, f := range c.backlog {
		if !byID || f.id == id {
			c.backlog = append(c.backlog[:i:i], c.backlog[i+1:]...)
			return f, ""
		}
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		select {
		case f, ok := <-c.frames:
			switch {
			case !ok:
				return f, c.end
			case !byID || f.id == id:
				return f, ""
			}
			c.backlog = append(c.backlog, f)
		case <-timeout.C:
			return f, nothing
		}
	}
}

func inspect(raw []byte) received {
	f := received{raw: raw}
	if len(raw) < 5 {
		f.flaw = "empty frame"
		return f
	}
	payload := raw[5:]
	text, err := transcode.AppendJSON(nil, payload)
	if err != nil {
		f.flaw = err.Error()
		return f
	}
	f.twin = string(text)
	f.id = parseTwin(f.twin).get("id").text()
	if again, err := transcode.EncodeJSON(text); err != nil || !bytes.Equal(again, payload) {
		f.flaw = fmt.Sprintf("not the smallest encoding: %x", payload)
	}
	return f
}

func (f received) name() string {
	if len(f.raw) < 5 {
		return "EMPTY"
	}
	switch f.raw[4] {
	case 0x02:
		return "RESPONSE"
	case 0x03:
		return "STREAM_CHUNK"
	case 0x04:
		return "STREAM_END"
	case 0xFF:
		return "ERROR"
	}
	return fmt.Sprintf("0x%02X", f.raw[4])
}

func appendFrame(dst []byte, kind byte, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(1+len(payload)))
	return append(append(dst, kind), payload...)
}

// fold joins "TYPE 1", "TYPE 2", "TYPE 3" to "TYPE 1..3", and three times the same to "TYPE 1 ×3".
func fold(lines []string) []string {
	var out []string
	for i := 0; i < len(lines); {
		kind, first, ok := numbered(lines[i])
		j := i + 1
		for ; ok && j < len(lines); j++ {
			k, n, ok := numbered(lines[j])
			if !ok || k != kind || n != first+j-i {
				break
			}
		}
		same := i + 1
		for same < len(lines) && lines[same] == lines[i] {
			same++
		}
		switch {
		case same-i > 2:
			out = append(out, fmt.Sprintf("%s ×%d", lines[i], same-i))
			j = same
		case j-i > 2:
			out = append(out, fmt.Sprintf("%s %d..%d", kind, first, first+j-i-1))
		default:
			out = append(out, lines[i:j]...)
		}
		i = j
	}
	return out
}

func numbered(line string) (kind string, n int, ok bool) {
	kind, text, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(text)
	return kind, n, err == nil
}
