package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/transcode"
	"trunkline/engine/link"
	"trunkline/handlers/ops"
)

// Bounds of what is remembered of a monitored connection.
const (
	// monitorHead is how much of each frame is read for its id and method, beside its payload.
	monitorHead = 4 << 10
	// monitorAsked is how many requests without an answer are remembered; beyond it all are
	// forgotten.
	monitorAsked = 1024
	// monitorName is the longest id or method that is shown, in bytes.
	monitorName = 128
)

// ipcConn is what the names of the kernel endpoint's connections begin with.
const ipcConn = "ipc-"

// monitor begins to observe a connection for /monitor.
func (s *server) monitor(conn string, payload int) (ops.Monitor, error) {
	if payload > 0 && !s.cfg.Load().Admin.MonitorPayloads {
		return nil, &ops.Refusal{Status: http.StatusForbidden, Text: "cannot show payloads: admin.monitor_payloads is false",
			Hint: "everyone who reaches the admin address could read them; set admin.monitor_payloads=true to allow it"}
	}
	number, ok := strings.CutPrefix(conn, ipcConn)
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		return nil, &ops.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("cannot monitor connection %q: want one of the kernel endpoint, such as ipc-12", conn),
			Hint: "'trunkline connections --protocol ipc' lists them"}
	}
	tap, err := s.kernel.taps.Observe(id, monitorHead+payload, frameSize(s.cfg.Load().Kernel.MaxFrameBytes))
	if err != nil {
		return nil, monitorRefusal(conn, err)
	}
	return &monitored{tap: tap, payload: payload, asked: make(map[string]request)}, nil
}

// monitorRefusal gives an error of Observe its status.
func monitorRefusal(conn string, err error) error {
	r := &ops.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("cannot monitor connection %s: %v", conn, err), Hint: "'trunkline connections' lists those that are open"}
	switch {
	case errors.Is(err, link.ErrTapped):
		r.Status, r.Hint = http.StatusConflict, "one reader at a time; end the other one first"
	case errors.Is(err, link.ErrTaps):
		r.Status, r.Hint = http.StatusTooManyRequests, "end one of the others first"
	}
	return r
}

// frameSize measures frames for link.Taps. What is sent begins with a type of an answer, or is the
// middle of a frame; what a peer sends may have any type.
func frameSize(limit int) func(out bool, b []byte) int {
	return func(out bool, b []byte) int {
		n := frame.Len(b)
		if n < frame.HeaderSize || n > frame.PrefixSize+limit || len(b) < frame.HeaderSize {
			return 0
		}
		if t := frame.Type(b[frame.PrefixSize]); out && (t == frame.Request || frameTypes[t] == "") {
			return 0
		}
		return n
	}
}

// frameTypes are the types of frames as /monitor names them.
var frameTypes = map[frame.Type]string{
	frame.Request: "request", frame.Response: "response", frame.Error: "error", frame.StreamChunk: "chunk", frame.StreamEnd: "end",
}

// unreadable is the type of what cannot be decoded.
const unreadable = "unreadable"

// monitored decodes the frames of one connection.
type monitored struct {
	tap     *link.Tap
	payload int                // bytes of each that are shown
	asked   map[string]request // by id: those without an answer
}

// request is what answers are shown with.
type request struct {
	method string
	at     int64 // Unix time in milliseconds
}

// Next implements ops.Monitor.
func (m *monitored) Next(ctx context.Context) ([]ops.Frame, error) {
	seen, lost, err := m.tap.Next(ctx)
	if err != nil {
		return []ops.Frame{{At: time.Now().UTC(), Type: "closed"}}, err
	}
	out := make([]ops.Frame, 0, len(seen)+1)
	for i := range seen {
		out = append(out, m.decode(&seen[i]))
	}
	if lost > 0 {
		out = append(out, ops.Frame{At: time.Now().UTC(), Type: "lost", Lost: lost})
	}
	return out, nil
}

// Close implements ops.Monitor.
func (m *monitored) Close() { m.tap.Close() }

// decode shows one frame.
func (m *monitored) decode(s *link.Seen) ops.Frame {
	f := ops.Frame{At: time.UnixMilli(s.At).UTC(), Direction: "in", Type: unreadable, Bytes: s.Size}
	if s.Out {
		f.Direction = "out"
	}
	if len(s.Head) < frame.HeaderSize {
		return f
	}
	t := frame.Type(s.Head[frame.PrefixSize])
	if name := frameTypes[t]; name != "" {
		f.Type = name
	}
	// Of a frame that is cut, the text is what comes before the cut.
	text, _ := transcode.AppendJSON(nil, s.Head[frame.HeaderSize:])
	body, whole := readMembers(&f, text)
	m.relate(&f, t, s.At)
	m.show(&f, body, whole)
	return f
}

// readMembers reads the members of a frame from its text, which may end early, and returns its body
// or its error. whole is whether that is complete.
func readMembers(f *ops.Frame, text []byte) (body []byte, whole bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var service, method string
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		from := min(int(dec.InputOffset())+len(":"), len(text))
		var value json.RawMessage
		err = dec.Decode(&value)
		switch key {
		case "id":
			f.ID = frameName(value)
		case "service":
			service = frameName(value)
		case "method":
			method = frameName(value)
		case "body", "error":
			if body, whole = value, err == nil; err != nil {
				body = text[from:]
			}
			if key == "error" && whole {
				var e struct{ Code string }
				_ = json.Unmarshal(value, &e)
				f.Code = shorten(e.Code)
			}
		}
		if err != nil {
			break
		}
	}
	if service != "" || method != "" {
		f.Method = service + "." + method
	}
	return body, whole
}

// frameName is a string of a frame, empty where it is none.
func frameName(value json.RawMessage) (s string) {
	_ = json.Unmarshal(value, &s)
	return shorten(s)
}

// shorten cuts a name.
func shorten(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), monitorName)], "")
}

// relate remembers a request, and gives an answer what is known of its request.
func (m *monitored) relate(f *ops.Frame, t frame.Type, at int64) {
	if f.Direction == "in" {
		if len(m.asked) >= monitorAsked {
			clear(m.asked)
		}
		m.asked[f.ID] = request{f.Method, at}
		return
	}
	r, ok := m.asked[f.ID]
	if !ok {
		return
	}
	f.Method = r.method
	if t != frame.StreamChunk {
		f.Seconds = float64(at-r.at) / 1e3
		delete(m.asked, f.ID)
	}
}

// show adds the payload, without credentials, as far as it is asked for.
func (m *monitored) show(f *ops.Frame, body []byte, whole bool) {
	if m.payload == 0 || len(body) == 0 {
		return
	}
	body = hideSecrets(nil, body, 0)
	if whole && len(body) <= m.payload {
		f.Payload = body
		return
	}
	f.PayloadCut = strings.ToValidUTF8(string(body[:min(len(body), m.payload)]), "")
}
