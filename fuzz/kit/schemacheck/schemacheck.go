// Package schemacheck compares messages of projects with their schemas, for tests.
package schemacheck

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"trunkline/engine/projects/schema"
)

// Schemas has all schemas. Any goroutine may use it.
type Schemas map[string]*jsonschema.Resolved

// Validator watches one conversation. One goroutine uses it.
type Validator struct {
	Schemas
	asked map[string][]byte // requests by id, in lower case; nil: two had the same
}

// Watch returns the validator of a conversation.
func (s Schemas) Watch() *Validator { return &Validator{s, make(map[string][]byte)} }

// Load reads all schemas.
func Load() (Schemas, error) {
	all := make(Schemas)
	for _, name := range schema.Names() {
		s, err := load(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read schema %s: %w", name, err)
		}
		all[name], err = s.Resolve(&jsonschema.ResolveOptions{Loader: func(uri *url.URL) (*jsonschema.Schema, error) { return load(uri.String()) }})
		if err != nil {
			return nil, fmt.Errorf("cannot resolve schema %s: %w", name, err)
		}
	}
	return all, nil
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
func (s Schemas) Check(name string, value []byte) error {
	of := s[name]
	if of == nil {
		return fmt.Errorf("there is no schema %s", name)
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("cannot read %.200s: %w", value, err)
	}
	if err := of.Validate(v); err != nil {
		return fmt.Errorf("%s: %w: %.2000s", name, err, value)
	}
	return nil
}

// message is what a validator looks at. A member that is absent is nil, or empty.
type message struct {
	kind, command, event string
	id                   *string // in lower case
	flat                 bool    // exacta §2.3
	code                 string  // of its error
	payload, result      []byte
}

// read reads a message. Names of members have one spelling here, unlike in a struct.
func read(line []byte) (*message, error) {
	var members, failure map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, err
	}
	text := func(from map[string]json.RawMessage, name string) (s string) {
		_ = json.Unmarshal(from[name], &s) // what is no text is none
		return s
	}
	_ = json.Unmarshal(members["error"], &failure) // the same
	m := &message{kind: text(members, "type"), command: text(members, "command"), event: text(members, "event"), code: text(failure, "code"),
		flat: members["ipc_version"] == nil || members["sent_at"] == nil || members["request_id"] == nil, payload: members["payload"], result: members["result"]}
	if id := strings.ToLower(text(members, "request_id")); id != "" {
		m.id = &id
	}
	return m, nil
}

// Asked notes what a client sends. It is compared once it was answered: what the server takes, the
// schemas take.
func (v *Validator) Asked(line []byte) {
	m, err := read(line)
	if err != nil || m.id == nil || m.flat {
		return
	}
	id := *m.id
	if before, again := v.asked[id]; again && string(before) != string(line) {
		line = nil
	}
	v.asked[id] = line
}

// Sent compares a line of a server with its schemas, and the request that it answers.
func (v *Validator) Sent(line []byte) error {
	m, err := read(line)
	if err != nil {
		return err
	}
	if err := v.Check("envelope:"+m.kind, line); err != nil {
		return err
	}
	switch m.kind {
	case "event":
		return v.Check("event:"+m.event+":payload", m.payload)
	case "ack":
		return v.answered(m, "envelope:subscribe")
	case "response":
		return v.answered(m, "envelope:request")
	}
	return fmt.Errorf("a server sends no %q", m.kind)
}

// answered compares what was answered, unless the answer is that it has not the right form.
func (v *Validator) answered(m *message, envelope string) error {
	if m.id == nil || v.asked[*m.id] == nil {
		return nil
	}
	line := v.asked[*m.id]
	switch m.code {
	case "IPC-001", "IPC-002", "IPC-003", "IPC-006", "IPC-009":
		return nil
	}
	if err := v.Check(envelope, line); err != nil || m.kind == "ack" {
		return err
	}
	asked, err := read(line)
	if err != nil {
		return err
	}
	if m.code == "" {
		if err := v.Check("command:"+asked.command+":result", m.result); err != nil {
			return err
		}
	}
	return v.Check("command:"+asked.command+":payload", asked.payload)
}
