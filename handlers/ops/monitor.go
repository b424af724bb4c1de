package ops

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"trunkline/handlers/internal/httpd"
)

// MaxPayloadBytes is the most that /monitor shows of the payload of a frame.
const MaxPayloadBytes = 64 << 10

// Frame is a line of /monitor: a frame or a line of the connection, or a mark.
type Frame struct {
	At time.Time `json:"at"`
	// Direction is "in" for what the peer sent and "out" for what it is sent; a mark has none.
	Direction string `json:"direction,omitempty"`
	// Type is "request", "response", "error", "chunk", "end", "event" or "unreadable"; that of a
	// mark is "lost" where Lost frames are missing, or "closed" at the end.
	Type string `json:"type"`
	// Method and ID are those of the request, also on its answers; empty where they are not known.
	// An event has its name there.
	Method string `json:"method,omitempty"`
	ID     string `json:"id,omitempty"`
	// Code is that of an error.
	Code string `json:"code,omitempty"`
	// Bytes is the length of the whole frame.
	Bytes int `json:"bytes,omitempty"`
	// Seconds is how long after its request an answer was given, where both were seen.
	Seconds float64 `json:"seconds,omitempty"`
	// Payload is the body where it was asked for and is short enough; PayloadCut is the beginning
	// of its text where it is not.
	Payload    json.RawMessage `json:"payload,omitempty"`
	PayloadCut string          `json:"payload_cut,omitempty"`
	Lost       uint64          `json:"lost,omitempty"`
}

// Monitor reads the frames of one connection.
type Monitor interface {
	// Next waits for frames. The error is io.EOF with the last ones, or that of ctx.
	Next(ctx context.Context) ([]Frame, error)
	Close()
}

// Refusal is an answer other than 200.
type Refusal struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
	Hint   string `json:"hint,omitempty"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// refuse answers with the status of a Refusal, 500 for other errors.
func refuse(w http.ResponseWriter, err error) {
	r := &Refusal{Status: http.StatusInternalServerError, Text: err.Error()}
	errors.As(err, &r)
	answer(w, r.Status, r)
}

// monitor streams frames as lines of JSON until the connection is closed or the reader goes away.
func (c Config) monitor(w http.ResponseWriter, r *http.Request) {
	payload, err := payloadBytes(r.FormValue("payload"))
	if err != nil {
		refuse(w, err)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	m, err := c.Monitor(r.FormValue("conn"), payload)
	if err != nil {
		refuse(w, err)
		return
	}
	defer m.Close()
	httpd.KeepStream(w, r)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // it would end the request, not only its reading
	w.Header().Set("Content-Type", "application/x-ndjson")
	_ = rc.Flush()
	lines := json.NewEncoder(w)
	for {
		frames, err := m.Next(r.Context())
		for i := range frames {
			// Each has its own time: a slow reader loses frames, not the connection.
			_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout))
			if lines.Encode(&frames[i]) != nil {
				return
			}
		}
		if rc.Flush() != nil || err != nil {
			return
		}
	}
}

// payloadBytes reads how much of each payload is asked for.
func payloadBytes(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > MaxPayloadBytes {
		return 0, &Refusal{Status: http.StatusBadRequest, Text: "cannot show " + strconv.Quote(text) + " bytes of payloads: want 0 to " + strconv.Itoa(MaxPayloadBytes)}
	}
	return n, nil
}
