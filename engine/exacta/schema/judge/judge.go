// Package judge compares messages of projects with their schemas, for tests.
package judge

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"trunkline/engine/exacta/schema"
)

// Judge watches one conversation. One goroutine uses it.
type Judge struct {
	schemas map[string]*jsonschema.Resolved
	asked   map[string][]byte // requests by id, in lower case; nil: two had the same
}

// New returns a judge that has all schemas.
func New() (*Judge, error) {
	j := &Judge{schemas: make(map[string]*jsonschema.Resolved), asked: make(map[string][]byte)}
	for _, name := range schema.Names() {
		s, err := load(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read schema %s: %w", name, err)
		}
		j.schemas[name], err = s.Resolve(&jsonschema.ResolveOptions{Loader: func(uri *url.URL) (*jsonschema.Schema, error) { return load(uri.String()) }})
		if err != nil {
			return nil, fmt.Errorf("cannot resolve schema %s: %w", name, err)
		}
	}
	return j, nil
}

func load(name string) (*jsonschema.Schema, error) {
	text, ok := schema.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("there is no schema %s", name)
	}
	s := new(jsonschema.Schema)
	return s, json.Unmarshal(text, s)
}

// Check compares a value with a schema.
func (j *Judge) Check(name string, value []byte) error {
	s := j.schemas[name]
	if s == nil {
		return fmt.Errorf("there is no schema %s", name)
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("cannot read %.200s: %w", value, err)
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%s: %w: %.2000s", name, err, value)
	}
	return nil
}

// message is what a judge looks at.
type message struct {
	Type      string          `json:"type"`
	Version   *string         `json:"ipc_version"`
	RequestID *string         `json:"request_id"`
	SentAt    *string         `json:"sent_at"`
	Command   string          `json:"command"`
	Event     string          `json:"event"`
	OK        bool            `json:"ok"`
	Payload   json.RawMessage `json:"payload"`
	Result    json.RawMessage `json:"result"`
	Error     *struct {
		Code string `json:"code"`
	} `json:"error"`
}

// Asked notes what a client sends. It is compared once it was answered: what the server takes, the
// schemas take.
func (j *Judge) Asked(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil || m.RequestID == nil || m.Version == nil || m.SentAt == nil {
		return // unreadable, or flat (exacta §2.3)
	}
	id := strings.ToLower(*m.RequestID)
	if before, again := j.asked[id]; again && string(before) != string(line) {
		line = nil
	}
	j.asked[id] = line
}

// Sent compares a line of a server with its schemas, and the request that it answers.
func (j *Judge) Sent(line []byte) error {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	if err := j.Check("envelope:"+m.Type, line); err != nil {
		return err
	}
	switch m.Type {
	case "event":
		return j.Check("event:"+m.Event+":payload", m.Payload)
	case "ack":
		return j.answered(&m, "envelope:subscribe")
	case "response":
		return j.answered(&m, "envelope:request")
	}
	return fmt.Errorf("a server sends no %s", m.Type)
}

// answered compares what was answered, unless the answer is that it has not the right form.
func (j *Judge) answered(m *message, envelope string) error {
	if m.RequestID == nil {
		return nil
	}
	line := j.asked[strings.ToLower(*m.RequestID)]
	if line == nil {
		return nil
	}
	if m.Error != nil {
		switch m.Error.Code {
		case "IPC-001", "IPC-002", "IPC-003", "IPC-006", "IPC-009":
			return nil
		}
	}
	if err := j.Check(envelope, line); err != nil || m.Type == "ack" {
		return err
	}
	var asked message
	if err := json.Unmarshal(line, &asked); err != nil {
		return err
	}
	if m.OK {
		if err := j.Check("command:"+asked.Command+":result", m.Result); err != nil {
			return err
		}
	}
	return j.Check("command:"+asked.Command+":payload", asked.Payload)
}
