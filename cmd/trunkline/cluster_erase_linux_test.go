package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// found returns the files of a node that have a text.
func (n *clusterNode) found(text string) (names []string) {
	_ = filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it was removed
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
			names = append(names, n.id+path[len(n.dir):])
		}
		return nil
	})
	return names
}

// TestClusterErase: an erased thread is gone from the files of all nodes: rows, copies of
// snapshots, streams, and the logs of the servers of the journal. One of them was down when it was
// erased, and forgets it when it is back.
func TestClusterErase(t *testing.T) {
	longBesideOthers(t)
	const secret = "5ecretText"
	r := newThreadRig(t)
	book := newThreadBook(r, 2)
	post := func(thread, i int, text string) {
		var got threadMessage
		r.surely(r.nodes[i%3], "/v1/post_message", fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":"%d %s %0900d","idempotency_key":"k%[2]d"}`,
			book.threads[thread], i, text, i), &got)
	}
	for i := range 900 {
		post(i%2, i, []string{secret, "stays"}[i%2])
	}
	r.until("rows and copies of snapshots have it", func() bool {
		time.Sleep(time.Second)
		return strings.Contains(fmt.Sprint(r.nodes[0].found(secret), r.nodes[1].found(secret), r.nodes[2].found(secret)), "/rows/")
	})
	owner := r.byID(r.nodes[0].ownerOf(0))
	dies := r.but(owner)[0]
	dies.kill()
	send := func(method, path, body string) string {
		t.Helper()
		var text []byte
		r.until(path, func() bool {
			req, err := http.NewRequest(method, "http://"+owner.admin+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+orderToken)
			req.Header.Set("Content-Type", "application/json")
			resp, err := r.clusterRig.web.Do(req)
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			text, err = io.ReadAll(resp.Body)
			if err == nil && resp.StatusCode/100 != 2 {
				t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
			}
			return err == nil
		})
		return string(text)
	}
	began := time.Now()
	send("POST", "/threads/"+book.threads[0]+"/erase", `{"reason":"on request"}`)
	dies.start()
	for last := ""; ; time.Sleep(2 * time.Second) {
		var all []string
		for _, n := range r.nodes {
			all = append(all, n.found(secret)...)
		}
		if now := fmt.Sprint(len(all), " ", all); now != last {
			last = now
			t.Logf("after %v: %s", time.Since(began).Round(time.Second), now)
		}
		if len(all) == 0 {
			break
		}
		if time.Since(began) > 6*time.Minute {
			t.Fatalf("after %v: %v\n%s", time.Since(began), all, send("GET", "/erasures", ""))
		}
	}
	for i := range 9 {
		post(1, 900+i, "stays")
	}
	if text := send("GET", "/threads/"+book.threads[0]+"/export", ""); !strings.HasSuffix(text, "{\"end\":true,\"messages\":450}\n") || strings.Contains(text, secret) {
		t.Errorf("%.300s", text)
	}
}
