//go:build !stdjson && (amd64 || arm64) && !go1.28

package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/bytedance/sonic"

	"trunkline/codec/jsonx"
)

// Question: which way from the body of a request to its fields is the fastest, when all of them
// begin with a strict check?

// postNames are the fields of a post.
var postNames = jsonx.NewNames("thread_id", "schema_version", "kind", "body", "metadata", "in_reply_to", "idempotency_key", "sender_agent_id",
	"sender_session_id", "workspace_id", "agent_id", "session_id", "role")

// typedPost is a post whose strings sonic unescapes.
type typedPost struct {
	ThreadID       string                 `json:"thread_id"`
	SchemaVersion  sonic.NoCopyRawMessage `json:"schema_version"`
	Kind           string                 `json:"kind"`
	Body           string                 `json:"body"`
	Metadata       sonic.NoCopyRawMessage `json:"metadata"`
	InReplyTo      string                 `json:"in_reply_to"`
	IdempotencyKey string                 `json:"idempotency_key"`
}

// post returns the body of a request of about n bytes.
func post(n int) []byte {
	const shape = `{"thread_id":"th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2","schema_version":1,"kind":"event","body":"%s",` +
		`"metadata":{"event_type":"finding_reported","line":42%s},"idempotency_key":"k-12345"}`
	const text = `Blocking issue found in \"null\" fallback.\n`
	fixed := len(shape) - len("%s%s")
	body := strings.Repeat(text, max(0, n-fixed)*3/4/len(text))
	var metadata strings.Builder
	for i := 0; fixed+len(body)+metadata.Len() < n-20; i++ {
		fmt.Fprintf(&metadata, `,"k%d":{"a":[1,2.5,true],"b":"x"}`, i)
	}
	return fmt.Appendf(nil, shape, body, metadata.String())
}

func BenchmarkDocument(b *testing.B) {
	out := make([]jsonx.Member, postNames.Len())
	d := NewDecoder(postNames)
	var s jsonx.Strict
	check := func(b *testing.B, doc []byte) {
		if p := s.Check(doc, 64); !p.OK() {
			b.Fatal(p)
		}
	}
	ways := []struct {
		name   string
		decode func(b *testing.B, doc []byte) error
	}{
		{"strict-scan", func(b *testing.B, doc []byte) error {
			if p := s.Scan(postNames, doc, 64, out); !p.OK() {
				b.Fatal(p)
			}
			return nil
		}},
		{"strict+sonic-raw", func(b *testing.B, doc []byte) error {
			check(b, doc)
			return d.Decode(doc, out)
		}},
		{"strict+sonic-struct", func(b *testing.B, doc []byte) error {
			check(b, doc)
			var p typedPost
			return native.UnmarshalFromString(unsafe.String(unsafe.SliceData(doc), len(doc)), &p)
		}},
		{"strict+encoding-json", func(b *testing.B, doc []byte) error {
			check(b, doc)
			var m map[string]json.RawMessage
			return json.Unmarshal(doc, &m)
		}},
		{"strict-alone", func(b *testing.B, doc []byte) error { check(b, doc); return nil }},
		{"sonic-raw-alone", func(_ *testing.B, doc []byte) error { return d.Decode(doc, out) }},
	}
	for _, n := range []int{200, 16 << 10, 1 << 20} {
		doc := post(n)
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				b.ReportAllocs()
				for b.Loop() {
					if err := way.decode(b, doc); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
