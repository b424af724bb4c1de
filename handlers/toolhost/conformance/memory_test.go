package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAnAppendWaitsForTheLock: the Python writer takes the same advisory lock (toolhost §4.7).
func TestAnAppendWaitsForTheLock(t *testing.T) {
	root := newDir(t)
	path := filepath.Join(root, "work", "memory", "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	c := serve(t, stdio, root, nil, "--serve", "builtin").io
	say1(c, `{"aid":"AID.MEMORY.APPEND.v1","inputs":{"stream":"s","text":"x"}}`)
	if got := c.next(300 * time.Millisecond); got != silent {
		t.Errorf("it does not wait: %s", got)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if got := c.next(patience); !strings.Contains(got, `"status":"OK"`) {
		t.Errorf("got %s", got)
	}
}

// TestScoresOfAQuery recomputes what toolhost §4.7 states of overlap, bm25 and their sum.
func TestScoresOfAQuery(t *testing.T) {
	root := newDir(t)
	docs := []string{"red apple", "red red plum tree", "green pear", "one two three four five six"}
	var b strings.Builder
	for i, d := range docs {
		fmt.Fprintf(&b, `{"ts_ms":%d,"stream":"s","text":"%s"}`+"\n", i+1, d)
	}
	if err := os.MkdirAll(filepath.Join(root, "work", "memory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "work", "memory", "s.jsonl"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	c := serve(t, stdio, root, nil, "--serve", "builtin").io
	query := []string{"red", "pear"}
	say1(c, `{"aid":"AID.MEMORY.QUERY.v1","inputs":{"stream":"s","query":"Red pear!","rerank":"none","top_k":10}}`)
	var r struct {
		Matches []struct {
			Text                      string
			Score, Overlap, Emb, Bm25 float64
		}
	}
	if err := json.Unmarshal([]byte(output(t, c.next(patience))), &r); err != nil || len(r.Matches) != len(docs) {
		t.Fatalf("%v: %d matches", err, len(r.Matches))
	}
	near := func(what, text string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 2e-4 {
			t.Errorf("%s of %q: %v, want %v", what, text, got, want)
		}
	}
	last := math.Inf(1)
	for _, m := range r.Matches {
		if !strings.Contains(m.Text, "red red") { // whether a repeated token counts twice is open
			near("overlap", m.Text, m.Overlap, count(m.Text, query)/float64(len(query)))
		}
		near("bm25", m.Text, m.Bm25, bm25(m.Text, docs, query))
		near("score", m.Text, m.Score, 0.55*m.Overlap+0.35*m.Emb+0.20*m.Bm25) // the lines are old: no recency
		if m.Score > last {
			t.Errorf("not sorted: %v", r.Matches)
		}
		last = m.Score
	}
}

// count is how many tokens of a document are tokens of the query.
func count(doc string, query []string) (n float64) {
	for _, tok := range strings.Fields(doc) {
		for _, q := range query {
			if tok == q {
				n++
			}
		}
	}
	return n
}

func bm25(doc string, docs, query []string) (sum float64) {
	const k1, b = 1.2, 0.75
	total := 0.0
	for _, d := range docs {
		total += float64(len(strings.Fields(d)))
	}
	mean, n := total/float64(len(docs)), float64(len(docs))
	for _, q := range query {
		df := 0.0
		for _, d := range docs {
			if count(d, []string{q}) > 0 {
				df++
			}
		}
		tf := count(doc, []string{q})
		idf := math.Log((n+1)/(df+1)) + 1
		sum += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(len(strings.Fields(doc)))/mean))
	}
	return sum
}
