package summary

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
)

// parse makes a window of fuzzer's text: a message per record, its fields one per line. A record
// ends at an empty line.
func parse(data []byte) (window []Message) {
	for record := range bytes.SplitSeq(data, []byte("\n\n")) {
		part := bytes.SplitN(record, []byte{'\n'}, 5)
		for len(part) < 5 {
			part = append(part, nil)
		}
		kind := "event"
		if len(part[0]) > 3 {
			kind = "chat"
		}
		window = append(window, Message{Seq: uint64(len(window) + 1), Kind: kind, ID: string(part[0]), InReplyTo: string(part[1]),
			Sender: string(part[2]), Metadata: part[3], Body: part[4]})
	}
	return window
}

// FuzzSummary summarizes any messages. Where all metadata is JSON, the model reads them too.
func FuzzSummary(f *testing.F) {
	f.Add([]byte("a\n\nx\n{\"event_type\":\"finding_reported\",\"severity\":\"high\",\"file\":\"f\",\"line\":42}\nbody\n\nb\na\nx\n{\"event_type\":\"fix_pushed\",\"commits\":[\"1\",\"\\u0032\"]}\nbody\n\nc\nb\nx\n{\"event_type\":\"finding_verified\"}\n"), uint16(3), "active")
	f.Add([]byte("a\nb\nx\n{\"event_type\":\"finding_reported\",\"task_id\":\"t\"}\n\nb\na\nx\n{\"event_type\":\"finding_rejected\",\"task_id\":\"t\",\"line\":1e0}\n"), uint16(9), "blocked")
	f.Add([]byte("a\n\nx\n{\"event_type\":\"thread_escalated\"}\nhelp\r\xff\n\nchat\n\n\xff\n{\n"), uint16(1), "blocked")
	f.Add([]byte("a\n\nx\n{\"event_type\":\"finding_reported\",\"finding_id\":\"f\",\"blocking\":true,\"line\":-\n\n"), uint16(0), "")
	f.Fuzz(func(t *testing.T, data []byte, latest uint16, status string) {
		window := parse(data)
		got := Summarize(window, uint64(latest), status)
		checkBounds(t, got)
		again := Summarize(window, uint64(latest), status)
		if got.Text != again.Text || !slices.Equal(got.OpenItems, again.OpenItems) {
			t.Fatalf("%q %q, and then %q %q", got.Text, got.OpenItems, again.Text, again.OpenItems)
		}
		if len(data) > 4096 || !readable(window) {
			return
		}
		want := modelSummary(window, uint64(latest), status)
		if len(want.Text) <= maxText && got.Text != want.Text || !slices.Equal(got.OpenItems, want.OpenItems) {
			t.Fatalf("got  %q\n     %q\nwant %q\n     %q", got.Text, got.OpenItems, want.Text, want.OpenItems)
		}
	})
}

// farLine matches numbers with an exponent that the model would take long for.
var farLine = regexp.MustCompile(`[0-9][eE][-+]?[0-9]{4}`)

// readable reports whether the model can read a window: it takes metadata that passes the checks
// of a server, and identifiers that are unique and not empty.
func readable(window []Message) bool {
	ids := map[string]bool{}
	for _, m := range window {
		if m.ID == "" || ids[m.ID] {
			return false
		}
		if len(m.Metadata) > 0 && (!jsonx.Check(m.Metadata, 64).OK() || m.Metadata[0] != '{' || farLine.Match(m.Metadata)) {
			return false
		}
		ids[m.ID] = true
	}
	return true
}

// FuzzClip: a clip of a body is shown as the body is.
func FuzzClip(f *testing.F) {
	f.Add([]byte("a\tb\nc"))
	f.Add([]byte(strings.Repeat("é ", 90)))
	f.Add([]byte(" \r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, most := range []int{itemExcerpt, lastExcerpt} {
			if got, want := excerpt(Clip(body), most), excerpt(body, most); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	})
}
