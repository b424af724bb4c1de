package threadstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// again returns the row of a message that was parsed.
func (m *message) again() []byte {
	p := &Post{Kind: m.kind, Body: m.body, Metadata: m.metadata, Key: m.key}
	copy(p.Digest[:], m.digest)
	var reply *rawID
	if m.replies {
		reply = &m.reply
	}
	row := appendRow(nil, &Actor{Agent: string(m.sender), Session: string(m.session)}, p, reply, &m.id, m.created)
	if m.erased {
		row[1] |= rowErased
	}
	return row
}

// FuzzRow reads any bytes as the row of a message. What is read is written so that it reads the
// same.
func FuzzRow(f *testing.F) {
	id := rawID{1, 2, 3}
	for _, p := range []*Post{
		{Body: []byte("hello")},
		{Kind: System, Body: []byte(`a\nb`), Metadata: []byte(`{"a":1}`), Key: []byte("k"), Digest: [digestSize]byte{9}},
	} {
		f.Add(appendRow(nil, alice, p, nil, &id, 1771329600000))
		f.Add(appendRow(nil, alice, p, &rawID{4}, &id, -1))
	}
	f.Add((&message{body: []byte(erasedText), erased: true}).again())
	f.Fuzz(func(t *testing.T, row []byte) {
		m, err := parseRow(row)
		if err != nil {
			return
		}
		if len(m.key) == 0 && m.digest != nil {
			return // it is read as one without a key
		}
		got, err := parseRow(m.again())
		if err != nil || !reflect.DeepEqual(norm(got), norm(m)) {
			t.Fatalf("%+v, then %+v: %v", m, got, err)
		}
	})
}

// norm makes empty slices nil.
func norm(m message) message {
	for _, b := range []*[]byte{&m.sender, &m.session, &m.key, &m.digest, &m.body, &m.metadata} {
		if len(*b) == 0 {
			*b = nil
		}
	}
	return m
}

// unreadable is rows that cannot be read.
type unreadable struct{ Rows }

var errUnreadable = errors.New("unreadable")

func (unreadable) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error {
	return errUnreadable
}

// TestReplyToNoIdentifier: what is no identifier of a message is not looked for in the rows.
func TestReplyToNoIdentifier(t *testing.T) {
	r := newRig(t, Config{HotBytes: 1, segment: 100})
	id := r.create()
	for i := range 20 {
		r.post(alice, id, "hello", fmt.Sprint("k", i))
	}
	r.sync()
	r.store()
	r.Engine.disk = unreadable{r.Engine.disk}
	f := func(reply string, want Code) {
		t.Helper()
		if _, ref := r.Post(alice, id, &Post{Body: []byte("x"), InReplyTo: []byte(reply)}, r.now); ref.Code != want {
			t.Errorf("%q: %+v, want %d", reply, ref, want)
		}
	}
	f("nonsense", NoMessage)
	f("msg_00000000000000000000000001", Failed)
}

// TestRow: a row keeps what read_messages shows, and one of another layout is refused.
func TestRow(t *testing.T) {
	id, _ := parseID([]byte("msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2"), messagePrefix)
	p := &Post{Kind: Event, Body: []byte(`say \"hi\"`), Metadata: []byte(`{"n":1.50}`), Key: []byte("k-1")}
	row := appendRow(nil, &Actor{Agent: `a"b`, Session: "s"}, p, &id, &id, 1771329660000)
	m, err := parseRow(row)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"message_id":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","schema_version":1,"seq":7,"kind":"event","body":"say \"hi\"","metadata":{"n":1.50},` +
		`"in_reply_to":"msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","sender_agent_id":"a\"b","sender_session_id":"s","created_at":"2026-02-17T12:01:00.000Z"}`
	if got := m.appendJSON(nil, 7); string(got) != want || !json.Valid(got) {
		t.Errorf("%s\nwant %s", got, want)
	}
	for n := range row[:len(row)-len(p.Metadata)] {
		if _, err := parseRow(row[:n]); err == nil {
			t.Errorf("%d of %d bytes are a row", n, len(row))
		}
	}
	row[0] = rowVersion - 1
	if _, err := parseRow(row); err == nil {
		t.Error("another layout is read")
	}
}
