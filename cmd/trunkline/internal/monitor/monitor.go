// Package monitor shows what goes over one connection: frames of the kernel endpoint, and lines of
// JSON.
package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/transcode"
	"trunkline/engine/connection"
	"trunkline/handlers/ops"
)

// Bounds of what is remembered of a monitored connection.
const (
	// headBytes is how much of each frame is read for its id and method, beside its payload.
	headBytes = 4 << 10
	// maxAsked is how many requests without an answer are remembered; beyond it all are
	// forgotten.
	maxAsked = 1024
	// maxName is the longest id or method that is shown, in bytes.
	maxName = 128
)

// Form is how what goes over a connection is read.
type Form struct {
	size func(out bool, b []byte) int // of the message at the front of b, as connection.Taps have it
	// read reads the members of a message into f, and returns its payload, which may be cut.
	read func(f *ops.Frame, s *connection.Seen) (body []byte, whole bool)
}

// Frames is the form of the kernel endpoint, whose frames have at most limit bytes.
func Frames(limit int) *Form { return &Form{frameSize(limit), readFrame} }

// Lines is the form of lines of JSON.
func Lines() *Form { return &Form{lineSize, readLine} }

// Observe begins to observe a connection, with so many bytes of each payload.
func (f *Form) Observe(taps *connection.Taps, id uint64, payload int) (ops.Monitor, error) {
	tap, err := taps.Observe(id, headBytes+payload, f.size)
	if err != nil {
		return nil, err
	}
	return &monitored{tap: tap, read: f.read, payload: payload, asked: make(map[string]request)}, nil
}

// frameSize measures frames for connection.Taps. What is sent begins with a type of an answer, or
// is the middle of a frame; what a peer sends may have any type.
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
	tap     *connection.Tap
	read    func(f *ops.Frame, s *connection.Seen) (body []byte, whole bool)
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
func (m *monitored) decode(s *connection.Seen) ops.Frame {
	f := ops.Frame{At: time.UnixMilli(s.At).UTC(), Direction: "in", Type: unreadable, Bytes: s.Size}
	if s.Out {
		f.Direction = "out"
	}
	body, whole := m.read(&f, s)
	m.relate(&f, s.At)
	m.show(&f, body, whole)
	return f
}

// readFrame reads a frame of the kernel endpoint. Its payload is its body or its error.
func readFrame(f *ops.Frame, s *connection.Seen) (body []byte, whole bool) {
	if len(s.Head) < frame.HeaderSize {
		return nil, false
	}
	if name := frameTypes[frame.Type(s.Head[frame.PrefixSize])]; name != "" {
		f.Type = name
	}
	// Of a frame that is cut, the text is what comes before the cut.
	text, _ := transcode.AppendJSON(nil, s.Head[frame.HeaderSize:])
	var service, method string
	eachMember(text, func(key string, value json.RawMessage, cut []byte) {
		switch key {
		case "id":
			f.ID = frameName(value)
		case "service":
			service = frameName(value)
		case "method":
			method = frameName(value)
		case "body", "error":
			if body, whole = value, cut == nil; !whole {
				body = cut
			}
			if key == "error" {
				f.Code = codeOf(value)
			}
		}
	})
	if service != "" || method != "" {
		f.Method = service + "." + method
	}
	return body, whole
}

// eachMember calls member for the members of an object of JSON, which may end early: its last one
// has no value then, but what there is of it. It reports whether there is an object, and whether it
// is whole.
func eachMember(text []byte, member func(key string, value json.RawMessage, cut []byte)) (object, whole bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return false, false
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return true, false
		}
		from := min(int(dec.InputOffset())+len(":"), len(text))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			member(key, nil, text[from:])
			return true, false
		}
		member(key, value, nil)
	}
	_, err := dec.Token()
	return true, err == nil && int(dec.InputOffset()) == len(text)
}

// codeOf is the code of an error, empty where it has none.
func codeOf(value json.RawMessage) string {
	var e struct{ Code string }
	_ = json.Unmarshal(value, &e)
	return shorten(e.Code)
}

// frameName is a string of a frame, empty where it is none.
func frameName(value json.RawMessage) (s string) {
	_ = json.Unmarshal(value, &s)
	return shorten(s)
}

// shorten cuts a name.
func shorten(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxName)], "")
}

// relate remembers a request, and gives an answer what is known of its request. One without an id
// has no answer that could be found.
func (m *monitored) relate(f *ops.Frame, at int64) {
	if f.ID == "" || f.Type == event {
		return
	}
	if f.Direction == "in" {
		if len(m.asked) >= maxAsked {
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
	if f.Type != frameTypes[frame.StreamChunk] {
		f.Seconds = float64(at-r.at) / 1e3
		delete(m.asked, f.ID)
	}
}

// show adds the payload, without credentials, as far as it is asked for.
func (m *monitored) show(f *ops.Frame, body []byte, whole bool) {
	if m.payload == 0 || len(body) == 0 {
		return
	}
	body = bytes.ToValidUTF8(hideSecrets(nil, body, 0), nil)
	if whole && len(body) <= m.payload {
		f.Payload = body
		return
	}
	f.PayloadCut = strings.ToValidUTF8(string(body[:min(len(body), m.payload)]), "")
}
