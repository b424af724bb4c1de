package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	"go.uber.org/goleak"

	"trunkline/engine/obs"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
	"trunkline/fuzz/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// received is a request that a receiver got.
type received struct {
	id, at, signature string
	thread            string
	seq               int
	body              []byte
}

// receiver is the target of a webhook.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(w http.ResponseWriter, r *http.Request, n int) // of request n, from 1 on
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) *receiver {
	rc := &receiver{answer: answer}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var doc struct {
			Data struct {
				Thread  string `json:"thread_id"`
				Message struct{ Seq int }
			}
		}
		_ = json.Unmarshal(body, &doc)
		h := r.Header
		rc.mu.Lock()
		rc.got = append(rc.got, received{h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"), doc.Data.Thread, doc.Data.Message.Seq, body})
		n := len(rc.got)
		rc.mu.Unlock()
		if rc.answer != nil {
			rc.answer(w, r, n)
		}
	}))
	t.Cleanup(rc.Close)
	return rc
}

func (rc *receiver) all() []received {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return slices.Clone(rc.got)
}

// rig is an engine in memory with a sender. Its clock goes on when a test has it.
type rig struct {
	t      *testing.T
	engine *threadstore.Engine
	client *Client
	sender *Sender
	ahead  atomic.Int64
	log    kit.Text
	id     string
}

func newRig(t *testing.T, list ...Target) *rig {
	t.Helper()
	r := &rig{t: t}
	r.client = NewClient(slog.New(slog.NewTextHandler(&r.log, nil)))
	r.client.Replace(list)
	r.open()
	return r
}

// open adds an engine, which is that of the rig then.
func (r *rig) open() {
	r.t.Helper()
	db, err := rows.Open(rows.Config{Memory: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.engine = threadstore.New(threadstore.Config{Now: func() int64 { return time.Now().UnixMilli() + r.ahead.Load() }})
	r.engine.Join(store.New(store.Config{Machines: []store.Machine{r.engine.Machine()}}))
	if err := r.engine.SetRows(threadstore.StoredRows(db)); err != nil {
		r.t.Fatal(err)
	}
	r.sender = r.client.Start(r.engine)
	sender := r.sender
	r.t.Cleanup(func() {
		sender.Close(r.t.Context())
		r.client.Close()
		_ = db.Close()
	})
	r.id = r.create()
}

var boss = &threadstore.Actor{Workspace: "w", Agent: "boss", Session: "s", Rank: threadstore.Coordinator}

func (r *rig) create() string {
	r.t.Helper()
	id, _, ref := r.engine.Create(boss, &threadstore.NewThread{Title: []byte("t")}, time.Now().UnixMilli())
	if ref.Code != threadstore.OK {
		r.t.Fatal(ref)
	}
	return id
}

func (r *rig) post(id string, n int) {
	r.t.Helper()
	for range n {
		if _, ref := r.engine.Post(boss, []byte(id), &threadstore.Post{Body: []byte("hello")}, time.Now().UnixMilli()); ref.Code != threadstore.OK {
			r.t.Fatal(ref)
		}
	}
}

// later moves the clock.
func (r *rig) later(d time.Duration) {
	r.ahead.Add(d.Milliseconds())
	r.engine.WakeDeliveries()
}

func (r *rig) eventually(what string, f func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("no %s: %s", what, r.log.String())
		}
	}
}

// state returns what has come of a target.
func (r *rig) state(name string) obs.Webhook {
	r.t.Helper()
	for _, st := range r.client.States() {
		if st.Name == name {
			st.Pending, _, _ = r.engine.WebhookBacklog(name)
			return st
		}
	}
	r.t.Fatal("no target ", name)
	return obs.Webhook{}
}

var secret = []byte("0123456789abcdef01234567")

func to(name, url string) Target {
	return Target{Webhook: threadstore.Webhook{Name: name}, URL: url, Secret: secret, Private: true}
}

// verify reads a signature as the page of Standard Webhooks describes it, apart from sign: the
// list, the version, the signed text.
func verify(t *testing.T, key []byte, got received) {
	t.Helper()
	version, text, _ := strings.Cut(strings.Fields(got.signature)[0], ",")
	want, err := base64.StdEncoding.DecodeString(text)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", got.id, got.at, got.body)
	if version != "v1" || err != nil || !hmac.Equal(want, mac.Sum(nil)) {
		t.Errorf("signature %s of %s", got.signature, got.id)
	}
	if at, err := strconv.ParseInt(got.at, 10, 64); err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Errorf("timestamp %s", got.at)
	}
}

// TestSign has the example that the libraries of Standard Webhooks share.
func TestSign(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	if got := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

// TestDeliver: messages of threads arrive signed, each thread in its order.
func TestDeliver(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/hook" {
			t.Error(r.Method, r.URL, r.Header)
		}
		w.WriteHeader([]int{200, 201, 204}[n%3])
	})
	r := newRig(t, to("h", rc.URL+"/hook"))
	ids := []string{r.id, r.create(), r.create()}
	const posts = 50
	for range posts {
		for _, id := range ids {
			r.post(id, 1)
		}
	}
	r.eventually("end", func() bool { return r.state("h").Pending == 0 })
	next, seen := map[string]int{}, map[string]bool{}
	for _, got := range rc.all() {
		verify(t, secret, got)
		if next[got.thread]++; got.seq != next[got.thread] || seen[got.id] {
			t.Errorf("message %d of %s is request %d of it", got.seq, got.thread, next[got.thread])
		}
		seen[got.id] = true
	}
	if len(seen) != 3*posts || r.state("h").Delivered != 3*posts {
		t.Error(len(seen), r.state("h"))
	}
}

// TestFailures: what is no 2xx is a failure, and is tried again; redirects are not followed.
func TestFailures(t *testing.T) {
	rest := newReceiver(t, nil)
	rc := newReceiver(t, func(w http.ResponseWriter, r *http.Request, n int) {
		switch n {
		case 1:
			http.Redirect(w, r, rest.URL, http.StatusTemporaryRedirect)
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
		case 3:
			panic(http.ErrAbortHandler)
		case 4:
			w.Header().Set("X", strings.Repeat("x", 2*maxAnswerHeadBytes))
		}
	})
	rc.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	r := newRig(t, to("h", rc.URL))
	r.post(r.id, 2)
	for n, want := range []int{307, 500, 0, 0} {
		r.eventually("failure", func() bool { return r.state("h").Failed == uint64(n+1) })
		if st := r.state("h"); st.LastStatus != want || st.LastError == "" || strings.Contains(st.LastError, rc.URL) {
			t.Errorf("%+v, want status %d", st, want)
		}
		r.later(time.Hour)
	}
	r.eventually("end", func() bool { return r.state("h").Pending == 0 })
	got := rc.all()
	if len(got) != 6 || got[4].id != got[0].id || string(got[4].body) != string(got[0].body) || got[5].seq != 2 || len(rest.all()) > 0 {
		t.Errorf("%d requests, %d of them redirected", len(got), len(rest.all()))
	}
	if st := r.state("h"); st.LastStatus != 200 || st.LastError != "" || st.Delivered != 2 || !strings.Contains(r.log.String(), `error="status 500"`) {
		t.Errorf("%+v: %s", st, r.log.String())
	}
}

// TestGone: 410 disables a webhook until the targets are replaced.
func TestGone(t *testing.T) {
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusGone)
		}
	})
	r := newRig(t, to("h", rc.URL))
	r.post(r.id, 2)
	r.eventually("end of it", func() bool { return r.state("h").Disabled })
	r.post(r.create(), 1)
	r.later(48 * time.Hour)
	time.Sleep(20 * time.Millisecond)
	if st := r.state("h"); len(rc.all()) != 1 || st.Pending != 2 || !strings.Contains(r.log.String(), "disabled") {
		t.Errorf("%d requests, %+v", len(rc.all()), st)
	}
	r.client.Replace([]Target{to("h", rc.URL)})
	r.eventually("delivery", func() bool { return r.state("h").Pending == 0 })
	if got := rc.all(); len(got) != 4 || r.state("h").Disabled {
		t.Errorf("%d requests", len(got))
	}
}

// TestReplace: what is pending goes to another URL, a webhook that is removed ends.
func TestReplace(t *testing.T) {
	bad := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500) })
	good := newReceiver(t, nil)
	r := newRig(t, to("moves", bad.URL), to("ends", bad.URL))
	r.post(r.id, 1)
	r.eventually("failures", func() bool { return len(bad.all()) >= 2 })
	moved := to("moves", good.URL)
	moved.Secret = []byte("another secret of 24 byte")
	r.client.Replace([]Target{moved})
	r.later(time.Hour)
	r.eventually("delivery", func() bool { return len(good.all()) == 1 })
	verify(t, moved.Secret, good.all()[0])
	n := len(bad.all())
	r.later(time.Hour)
	r.post(r.id, 1)
	r.eventually("delivery", func() bool { return len(good.all()) == 2 })
	if len(bad.all()) != n || len(r.client.States()) != 1 {
		t.Error("a webhook that was removed is used")
	}
	r.client.Replace(nil)
	r.post(r.id, 1)
	r.client.Replace([]Target{moved})
	r.post(r.id, 1)
	r.eventually("delivery", func() bool { return len(good.all()) == 3 })
	if got := good.all()[2]; got.seq != 4 {
		t.Errorf("message %d was posted before", got.seq)
	}
}

// TestHanging: a target that does not answer holds its own requests; all of them together hold no
// more than there are, and the others get theirs.
func TestHanging(t *testing.T) {
	var open, most atomic.Int64
	held := make(chan struct{})
	hanging := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {
		n := open.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-held
		open.Add(-1)
	})
	good := newReceiver(t, nil)
	list := []Target{to("good", good.URL)}
	const hang = maxRequests/maxTargetRequests - 1
	for i := range hang {
		list = append(list, to(fmt.Sprint("hangs", i), hanging.URL))
	}
	r := newRig(t, list...)
	for range 2 * maxTargetRequests {
		r.post(r.create(), 1)
	}
	r.post(r.id, 100)
	r.eventually("delivery to the others", func() bool { return r.state("good").Pending == 0 })
	if n := open.Load(); n != hang*maxTargetRequests {
		t.Errorf("%d requests hang, want %d", n, hang*maxTargetRequests)
	}
	for i := range 2 { // further ones have what is left
		list = append(list, to(fmt.Sprint("more", i), hanging.URL))
	}
	r.client.Replace(list)
	for range 2 * maxTargetRequests {
		r.post(r.create(), 1)
	}
	r.eventually("requests", func() bool { return open.Load() >= maxRequests-1 })
	time.Sleep(20 * time.Millisecond)
	if n := most.Load(); n > maxRequests {
		t.Errorf("%d requests at a time", n)
	}
	close(held)
	r.eventually("end", func() bool {
		n := 0
		for _, st := range r.client.States() {
			n += r.state(st.Name).Pending
		}
		return n == 0
	})
	if n := most.Load(); n > maxRequests {
		t.Errorf("%d requests at a time", n)
	}
}

// TestAllHang: where all requests hang, other webhooks get theirs as soon as some end.
func TestAllHang(t *testing.T) {
	hanging := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	})
	good := newReceiver(t, nil)
	var list []Target
	for i := range 2 * maxRequests {
		list = append(list, to(fmt.Sprint("hangs", i), hanging.URL))
	}
	r := newRig(t, append(list, to("good", good.URL))...)
	for range 20 {
		r.post(r.create(), 1)
	}
	r.eventually("delivery", func() bool { return len(good.all()) >= 5 })
}

// TestEnginesShareRequests: senders of two engines are bounded together, and one goes on when the
// other ends a request.
func TestEnginesShareRequests(t *testing.T) {
	var open, most atomic.Int64
	rc := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {
		most.Store(max(most.Load(), open.Add(1)))
		time.Sleep(time.Millisecond)
		open.Add(-1)
	})
	r := newRig(t, to("h", rc.URL))
	first, id := r.engine, r.id
	r.open()
	for range 30 {
		r.post(r.create(), 1)
		if _, ref := first.Post(boss, []byte(id), &threadstore.Post{Body: []byte("x")}, 1); ref.Code != threadstore.OK {
			t.Fatal(ref)
		}
	}
	r.eventually("end of both", func() bool {
		n, _, _ := first.WebhookBacklog("h")
		return n+r.state("h").Pending == 0
	})
	if n := most.Load(); n > maxTargetRequests || len(rc.all()) != 60 {
		t.Errorf("%d requests at a time, %d in all", n, len(rc.all()))
	}
}

// TestGivenUp: a delivery is a dead letter after a day of failures, and the next one follows.
func TestGivenUp(t *testing.T) {
	var works atomic.Bool
	rc := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		if !works.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	r := newRig(t, to("h", rc.URL))
	r.post(r.id, 2)
	r.eventually("failure", func() bool { return r.state("h").Failed == 1 })
	r.later(24*time.Hour - time.Minute)
	r.eventually("failure", func() bool { return r.state("h").Failed == 2 })
	works.Store(false)
	r.later(time.Hour)
	r.eventually("dead letter", func() bool {
		_, dead, _ := r.engine.WebhookBacklog("h")
		return len(dead) == 1 && dead[0].Seq == 1 && dead[0].Status == http.StatusBadGateway
	})
	works.Store(true)
	r.later(time.Hour)
	r.eventually("next message", func() bool { return r.state("h").Pending == 0 })
	if n := r.engine.Resend("h", "", 0); n != 1 {
		t.Error(n)
	}
	r.eventually("message that is sent again", func() bool {
		got := rc.all()
		return got[len(got)-1].seq == 1
	})
	if !strings.Contains(r.log.String(), "webhook delivery given up") {
		t.Error(r.log.String())
	}
}

// TestClose: requests under way end with the sender, and are made again by the next one.
func TestClose(t *testing.T) {
	var hangs atomic.Bool
	hangs.Store(true)
	rc := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		if hangs.Load() {
			<-r.Context().Done()
		}
	})
	r := newRig(t, to("h", rc.URL))
	r.post(r.id, 1)
	r.eventually("request", func() bool { return len(rc.all()) == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.sender.Close(ctx)
	(*Sender)(nil).Close(ctx)
	if st := r.state("h"); st.Failed != 0 || st.Pending != 1 {
		t.Errorf("%+v", st)
	}
	hangs.Store(false)
	s := r.client.Start(r.engine)
	defer s.Close(t.Context())
	r.eventually("delivery", func() bool { return r.state("h").Pending == 0 })
}

// TestPublic has addresses of each kind (RFC 6890), also within those of IPv6.
func TestPublic(t *testing.T) {
	guard := ssrf.New(ssrf.WithAnyPort())
	f := func(want bool, list ...string) {
		t.Helper()
		for _, text := range list {
			err := guard.Safe("tcp4", netip.AddrPortFrom(netip.MustParseAddr(text), 8443).String(), nil)
			if (err == nil) != want {
				t.Errorf("%s: %v, want it public: %v", text, err, want)
			}
		}
	}
	f(true, "8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "192.0.1.0", "198.17.0.1", "198.20.0.0",
		"223.255.255.255", "2606:4700::1111", "2a00::1", "2001:200::1")
	private := []string{"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.255", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
		"203.0.113.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255"}
	f(false, private...)
	for _, text := range private {
		f(false, "::ffff:"+text, "64:ff9b::"+text)
	}
	f(false, "::", "::1", "::7f00:1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "64:ff9b:1::1", "100::1", "2001::1",
		"2001:db8::1", "2001:20::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1")
}

// TestRefusePrivate: a private address is refused where the target does not allow it, for names
// that resolve to it, too, and connections of targets that allow it are not used.
func TestRefusePrivate(t *testing.T) {
	rc := newReceiver(t, nil)
	guarded := to("guarded", rc.URL)
	guarded.Private = false
	named := guarded
	named.Name, named.URL = "named", strings.Replace(rc.URL, "127.0.0.1", "localhost", 1)
	open := to("open", rc.URL)
	r := newRig(t, open, guarded, named)
	r.post(r.id, 1)
	for _, name := range []string{"guarded", "named"} {
		r.eventually("refusal", func() bool { return r.state(name).Failed == 1 })
		if st := r.state(name); st.LastStatus != 0 || !strings.Contains(st.LastError, "prohibited IP") {
			t.Errorf("%+v", st)
		}
	}
	r.eventually("delivery", func() bool { return r.state("open").Delivered == 1 })
	if got := rc.all(); len(got) != 1 {
		t.Errorf("%d requests", len(got))
	}
}

// TestRebinding: a name that resolves to a public address first and to a private one when it is
// dialled is refused: there is one resolution, and what it returns is checked as it is dialled.
func TestRebinding(t *testing.T) {
	var asked atomic.Int64
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	defer served.Wait()
	defer dns.Close()
	served.Go(func() {
		buf := make([]byte, 512)
		for {
			n, from, err := dns.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = dns.WriteTo(rebinds(buf[:n], asked.Add(1)), from)
		}
	})
	rc := newReceiver(t, nil)
	_, port, _ := net.SplitHostPort(rc.Listener.Addr().String())
	d := &net.Dialer{Timeout: 2 * time.Second, Control: ssrf.New(ssrf.WithAnyPort()).Safe, Resolver: &net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", dns.LocalAddr().String())
		}}}
	c := NewClient(slog.New(slog.DiscardHandler))
	c.public = newHTTP(d)
	defer c.Close()
	target := Target{URL: "http://rebinds.example:" + port, Secret: secret}
	for range 3 {
		status, err := c.post(t.Context(), &target, &threadstore.Delivery{ID: "msg_1", Body: []byte("{}")})
		if status != 0 || err == nil || asked.Load() > 2 && !strings.Contains(err.Error(), "prohibited IP") {
			t.Errorf("%d, %v", status, err)
		}
	}
	if asked.Load() == 0 || len(rc.all()) > 0 {
		t.Errorf("%d questions, %d requests", asked.Load(), len(rc.all()))
	}
}

// rebinds answers a question for an A record by TEST-NET-1 at first and then by loopback, and any
// other by nothing.
func rebinds(question []byte, n int64) []byte {
	answer := slices.Clone(question[:12])
	end := 12 + slices.Index(question[12:], 0) + 5
	answer[2], answer[3] = 0x81, 0x80
	answer[8], answer[9], answer[10], answer[11] = 0, 0, 0, 0
	answer = append(answer, question[12:end]...)
	if question[end-3] == 1 {
		answer[7] = 1
		ip := []byte{127, 0, 0, 1}
		if n <= 2 {
			ip = []byte{192, 0, 2, 1}
		}
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		answer = append(answer, ip...)
	} else {
		answer[7] = 0
	}
	return answer
}
