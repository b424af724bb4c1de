package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/ops"
	"trunkline/handlers/threads/token"
)

// threadRig is a cluster that serves agent threads, with a token for a workspace. It writes
// snapshots often, so that the journal forgets what is in them.
type threadRig struct {
	*clusterRig
	key       string // the file by which all nodes verify tokens
	private   []byte // signs them
	workspace string
	bearer    string
	web       http.Client
}

func newThreadRig(t *testing.T, settings ...string) *threadRig {
	t.Helper()
	private, public, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	settings = append(settings, "threads.public_key_file="+key, "threads.issuer=i", "threads.listen_addr=127.0.0.1:0",
		"threads.lines_addr=127.0.0.1:0", "threads.supervisor_mode=off", "store.snapshot_interval_secs=4")
	r := &threadRig{clusterRig: newOrderedRig(t, settings...), key: key, private: private, web: http.Client{Timeout: answerPatience}}
	t.Cleanup(r.web.CloseIdleConnections)
	return r.as("wk")
}

// as returns the rig with a token for another workspace.
func (r *threadRig) as(workspace string) *threadRig {
	r.t.Helper()
	now := float64(time.Now().Unix())
	bearer, err := token.Sign(r.private, &token.Claims{Agent: "lead", Workspace: workspace, Session: "s", ID: "j", Role: token.Coordinator, Issued: now, Expires: now + 3600}, "i", token.DefaultAudience)
	if err != nil {
		r.t.Fatal(err)
	}
	other := *r
	other.workspace, other.bearer = workspace, bearer
	return &other
}

// addr returns where a node serves a surface: its newest process.
func (n *clusterNode) addr(surface string) string {
	all := regexp.MustCompile(surface+` listening on (\S+) `).FindAllStringSubmatch(n.out.String(), -1)
	if len(all) == 0 {
		return "127.0.0.1:1" // it has just started
	}
	return all[len(all)-1][1]
}

var errRefused = errors.New("the request was refused")

// ask calls a method at a node. An error wraps errRefused where the server has answered.
func (r *threadRig) ask(n *clusterNode, path, body string, into any) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+n.addr("threads http")+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.bearer)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := r.web.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusServiceUnavailable && bytes.Contains(text, []byte(`"retryable":true`)):
		return fmt.Errorf("%d: %s", resp.StatusCode, text)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: %d: %s", errRefused, resp.StatusCode, text)
	}
	return json.Unmarshal(text, into)
}

// surely repeats a request, which has a key or changes nothing, until it is answered.
func (r *threadRig) surely(n *clusterNode, path, body string, into any) {
	r.t.Helper()
	r.until(path+" at node "+n.id, func() bool {
		err := r.ask(n, path, body, into)
		if errors.Is(err, errRefused) {
			r.t.Errorf("%s at node %s: %v", path, n.id, err)
		}
		return err == nil
	})
}

// threadMessage is a message as clients see it.
type threadMessage struct {
	ID   string `json:"message_id"`
	Seq  uint64 `json:"seq"`
	Body string `json:"body"`
}

// threadBook is what clients know of the threads: the first answer to each key, which is the body
// of its message, and every message that one of them has read.
type threadBook struct {
	rig     *threadRig
	threads []string

	mu    sync.Mutex
	acked map[string]threadMessage
	keys  []string // those that are acked
	read  map[string]threadMessage
}

// newThreadBook makes threads.
func newThreadBook(r *threadRig, count int) *threadBook {
	r.t.Helper()
	b := &threadBook{rig: r, acked: map[string]threadMessage{}, read: map[string]threadMessage{}}
	for i := range count {
		var made struct {
			ID string `json:"thread_id"`
		}
		r.surely(r.nodes[i%len(r.nodes)], "/v1/create_thread", fmt.Sprintf(`{"workspace_id":%q,"title":"t","type":"workflow","participants":["a"],"idempotency_key":"t%d"}`, r.workspace, i), &made)
		b.threads = append(b.threads, made.ID)
	}
	return b
}

// post posts a message with a key, and compares the answer with the first one.
func (b *threadBook) post(n *clusterNode, thread int, key string) error {
	var got threadMessage
	err := b.rig.ask(n, "/v1/post_message", fmt.Sprintf(`{"thread_id":%q,"schema_version":1,"kind":"chat","body":%q,"idempotency_key":%q}`, b.threads[thread], key, key), &got)
	if errors.Is(err, errRefused) {
		b.rig.t.Errorf("%s at node %s: %v", key, n.id, err)
	}
	if err != nil {
		return err
	}
	got.Body = key
	b.mu.Lock()
	defer b.mu.Unlock()
	if first, again := b.acked[key]; !again {
		b.acked[key], b.keys = got, append(b.keys, key)
	} else if got != first {
		b.rig.t.Errorf("%s at node %s is answered %+v, and was %+v", key, n.id, got, first)
	}
	return nil
}

// page reads messages of a thread behind a number, and compares them with what others have read.
// It returns the number to go on from.
func (b *threadBook) page(n *clusterNode, thread int, since uint64) (next uint64, more bool, err error) {
	var got struct {
		Messages []threadMessage `json:"messages"`
		Next     uint64          `json:"next_seq"`
		More     bool            `json:"has_more"`
	}
	if err := b.rig.ask(n, "/v1/read_messages", fmt.Sprintf(`{"thread_id":%q,"since_seq":%d,"limit":200}`, b.threads[thread], since), &got); err != nil {
		return since, true, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range got.Messages {
		since++
		at := fmt.Sprint(thread, "/", m.Seq)
		if first, known := b.read[at]; m.Seq != since || known && first != m {
			b.rig.t.Errorf("node %s, thread %d: message %d is %+v, and was %+v", n.id, thread, since, m, first)
		}
		b.read[at] = m
	}
	if got.Next != since {
		b.rig.t.Errorf("node %s, thread %d: a page ends at %d, and goes on at %d", n.id, thread, since, got.Next)
	}
	return got.Next, got.More, nil
}

// check reads all threads through a node: what was acknowledged is there, at its number and once.
func (b *threadBook) check(n *clusterNode) {
	t := b.rig.t
	t.Helper()
	seen := map[string]bool{}
	for thread := range b.threads {
		for since, more := uint64(0), true; more; {
			b.rig.until("a page at node "+n.id, func() bool {
				next, rest, err := b.page(n, thread, since)
				since, more = next, rest
				return err == nil
			})
			b.mu.Lock()
			m, ok := b.read[fmt.Sprint(thread, "/", since)]
			b.mu.Unlock()
			if since > 0 && (!ok || m.Seq != since) {
				t.Errorf("thread %d ends at %d", thread, since)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, m := range b.read {
		if seen[m.Body] {
			t.Errorf("%s is there twice, at %s too", m.Body, at)
		}
		seen[m.Body] = true
	}
	for key, first := range b.acked {
		if !seen[key] {
			t.Errorf("node %s: %s was acknowledged as %+v, and is lost", n.id, key, first)
		}
	}
	for _, m := range b.read {
		if first, ok := b.acked[m.Body]; ok && first != m {
			t.Errorf("node %s: %+v was acknowledged as %+v", n.id, m, first)
		}
	}
}

// load has clients of all nodes post, each key until it is answered and some once more, and others
// read what comes.
func (b *threadBook) load(perNode int) *clusterLoad {
	r := b.rig
	made := make([]int, perNode*len(r.nodes))
	cursors := make([]map[int]uint64, len(made))
	return newClusterLoad(r.clusterRig, perNode, func(c *clusterClient, w int) (acked int) {
		thread := (w + made[w]) % len(b.threads)
		key := fmt.Sprintf("w%d-%d", w, made[w])
		if b.post(c.node, thread, key) != nil {
			return 0
		}
		if made[w]%7 == 3 { // an earlier one again
			again := made[w] / 2
			_ = b.post(c.node, (w+again)%len(b.threads), fmt.Sprintf("w%d-%d", w, again))
		}
		made[w]++
		if cursors[w] == nil {
			cursors[w] = map[int]uint64{}
		}
		at := w % len(b.threads) // from where it was, whatever has happened since
		cursors[w][at], _, _ = b.page(c.node, at, cursors[w][at])
		return 1
	})
}

// ownBy makes a node the owner: others that are it end in order until it takes over.
func (r *threadRig) ownBy(n *clusterNode) {
	r.t.Helper()
	for range 10 {
		owner := r.owner(r.nodes...)
		if owner == n {
			return
		}
		owner.terminate()
		r.owner(r.but(owner)...)
		owner.start()
		r.ready(owner)
	}
	r.t.Fatalf("node %s never takes over", n.id)
}

// TestClusterThreads: while clients of all nodes post and read, nodes are killed and started again,
// and one loses its directory. What was acknowledged is there once, every thread has its numbers
// without a gap, a key gets its first answer, and readers go on where they were.
func TestClusterThreads(t *testing.T) {
	longBesideOthers(t)
	r := newThreadRig(t)
	book := newThreadBook(r, 4)
	load := book.load(2)
	defer load.end()
	load.more(100)
	load.killNodes()
	r.until("the journal was purged", func() bool {
		var v ops.Store
		r.owner(r.nodes...).get("/store", &v)
		return v.Journal != nil && v.Journal.Snapshots > 2
	})
	lost := r.but(r.owner(r.nodes...))[0]
	lost.kill()
	if err := os.RemoveAll(lost.dir); err != nil {
		t.Fatal(err)
	}
	before := len(lost.out.String())
	lost.start()
	r.ready(lost)
	load.more(100)
	load.end()
	r.until("node "+lost.id+" has read the archive", func() bool { return strings.Contains(lost.out.String()[before:], "from the archive") })
	for _, n := range r.nodes {
		book.check(n)
	}
	r.ownBy(lost)
	for _, key := range book.keys[:min(len(book.keys), 50)] {
		var w, i int
		if _, err := fmt.Sscanf(key, "w%d-%d", &w, &i); err != nil {
			t.Fatal(err)
		}
		r.until(key+" again", func() bool { return book.post(lost, (w+i)%len(book.threads), key) == nil })
	}
	book.check(r.nodes[0])
	t.Logf("%d messages, %d acknowledged", len(book.read), len(book.acked))
}

// TestClusterThreadsOfAPausedOwner: an owner that was paused past its lease shows nothing that is
// older than what the next one has answered.
func TestClusterThreadsOfAPausedOwner(t *testing.T) {
	longBesideOthers(t)
	r := newThreadRig(t)
	book := newThreadBook(r, 1)
	owner := r.owner(r.nodes...)
	posts := 0
	post := func(n *clusterNode) {
		t.Helper()
		posts++
		key := fmt.Sprint("k", posts)
		r.until("a post at node "+n.id, func() bool { return book.post(n, 0, key) == nil })
	}
	post(owner)
	var last uint64
	r.until("a page", func() bool {
		var err error
		last, _, err = book.page(owner, 0, 0)
		return err == nil && last == uint64(posts)
	})
	owner.pause()
	next := r.owner(r.but(owner)...)
	for range 5 {
		post(next)
	}
	owner.signal(syscall.SIGCONT)
	for answered := 0; answered < 20; { // the first ones of what was paused, if it answers at all
		if _, _, err := book.page(owner, 0, uint64(posts)); err == nil {
			answered++
		}
	}
	r.ready(r.nodes...)
	book.check(owner)
}

// TestClusterThreadSurfaces: each surface is there at each node.
func TestClusterThreadSurfaces(t *testing.T) {
	besideOthers(t)
	r := newThreadRig(t)
	book := newThreadBook(r, 1)
	r.until("a post", func() bool { return book.post(r.nodes[0], 0, "hello") == nil })
	for _, n := range r.nodes {
		r.lookAtSurfaces(n, book.threads[0], "hello")
	}
}
