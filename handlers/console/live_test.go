package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
)

// feed is what a live view gets, over a socket.
type feed struct {
	t    testing.TB
	resp *http.Response
	in   *bufio.Reader
	stop context.CancelFunc
}

// serve has the console answer on a socket, and returns its address.
func (r *rig) serve() string {
	s := httptest.NewUnstartedServer(r.Guard(r))
	s.Config.ReadTimeout, s.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond // as the listener has them, only shorter
	s.Start()
	r.t.Cleanup(func() {
		r.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s.URL
}

func follow(t testing.TB, address, lastID string) *feed {
	t.Helper()
	return followAs(t, address, lastID, nil)
}

// followAs is follow with the cookie of a login, if there is one.
func followAs(t testing.TB, address, lastID string, login *http.Cookie) *feed {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	q, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		q.Header.Set("Last-Event-ID", lastID)
	}
	if login != nil {
		q.AddCookie(login)
		q.Host = "localhost:50090" // the cookie has the port
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("a live view is refused: %s", resp.Status)
	}
	f := &feed{t, resp, bufio.NewReader(resp.Body), stop}
	t.Cleanup(f.end)
	return f
}

func (f *feed) end() {
	f.stop()
	f.resp.Body.Close()
}

// next returns the id, name and data of the next event; without one the view has ended.
func (f *feed) next() (id, name, data string) {
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return id, name, data
		}
		switch key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); key {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if name != "" {
				return id, name, data
			}
		}
	}
}

// wantRow checks that the next event is of a kind and has a text, and returns its id.
func (f *feed) wantRow(kind, text string) string {
	f.t.Helper()
	id, name, data := f.next()
	if name != kind || !strings.Contains(data, text) {
		f.t.Fatalf("%s %s %s, want %s with %s", id, name, data, kind, text)
	}
	return id
}

// sub returns the subscription number i, once it is there.
func (r *rig) sub(i int) *fakeSub {
	for {
		r.mu.Lock()
		subs := r.subs
		r.mu.Unlock()
		if len(subs) > i {
			return subs[i]
		}
		time.Sleep(time.Millisecond)
	}
}

func event(text string) Event {
	return Event{At: time.Unix(1_780_000_000, 0), Type: "a", Source: hostile, Payload: text}
}

// TestLiveEndsWithTheLogin: a live view ends when its visitor logs out, and when another token is
// in force; one of another login does not.
func TestLiveEndsWithTheLogin(t *testing.T) {
	r := newRig(t, withTokens)
	address := r.serve() + root + "topic/live?type=a"
	leaving, staying := r.logIn(viewToken), r.logIn(opToken)
	left, stayed := followAs(t, address, "", leaving), followAs(t, address, "", staying)
	page := r.do(with(request("GET", root, nil), leaving))
	if w := r.do(with(request("POST", root+"logout", url.Values{"csrf": {secretOf(page)}}), leaving)); w.Code != 303 {
		t.Fatal(w.Code)
	}
	if _, name, _ := left.next(); name != "" {
		t.Errorf("%s after the end of the login", name)
	}
	r.sub(0).events <- event("one")
	stayed.wantRow("row", "one")
	r.SetTokens(viewToken, "another one of operators")
	if _, name, _ := stayed.next(); name != "" {
		t.Errorf("%s after the end of the token", name)
	}
	for len(r.streams) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestLiveRows: events arrive, longer than the listener's limits for answers; a view that comes
// back misses nothing, and what is missing is marked.
func TestLiveRows(t *testing.T) {
	r := newRig(t)
	base := r.serve()
	f := follow(t, base+root+"topic/live?type=b+a", "")
	if h := f.resp.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("Content-Security-Policy") != contentSecurity {
		t.Errorf("headers %v", h)
	}
	s := r.sub(0)
	if fmt.Sprint(s.types) != "[a b]" {
		t.Errorf("types %v", s.types)
	}
	s.events <- event(`{"n":1}`)
	first := f.wantRow("row", `{\"n\":1}`)
	time.Sleep(300 * time.Millisecond) // beyond the limits of the listener
	s.events <- event("two")
	f.wantRow("row", `"payload":"two"`)
	s.events <- Event{Gap: true, Dropped: 7}
	f.wantRow("gap", "7 events are missing here")
	f.end()

	s.events <- event("four") // without a viewer
	again := follow(t, base+root+"topic/live?type=a+b", first)
	again.wantRow("row", "two")
	again.wantRow("gap", "7 events")
	again.wantRow("row", "four")
	again.end()

	want(t, r.get(root+"topic?type=a+b"), 200, "four")
	stranger := follow(t, base+root+"topic/live?type=a+b", "ABCDEFGH-3")
	stranger.wantRow("gap", "events are missing here")
	stranger.wantRow("row", `{\"n\":1}`)
	if len(r.subs) != 1 {
		t.Errorf("%d subscriptions, want 1", len(r.subs))
	}
	close(s.events)
	stranger.wantRow("row", "two")
	for name := "x"; name != ""; {
		_, name, _ = stranger.next()
	}
	<-s.closed
	// The next viewer gets a new subscription.
	follow(t, base+root+"topic/live?type=a+b", "")
	r.sub(1)
}

// TestTailBound: a tail keeps tailEvents events, and the one that one more pushes out is a gap.
func TestTailBound(t *testing.T) {
	r := newRig(t)
	one, err := r.tails.open(context.Background(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	await := func(number uint64) {
		for {
			rows, _, news, _ := one.since(number - 1)
			if len(rows) > 0 {
				return
			}
			<-news
		}
	}
	for range tailEvents {
		r.sub(0).events <- event("x")
	}
	await(tailEvents)
	if rows, lost, _, _ := one.since(0); len(rows) != tailEvents || lost != 0 {
		t.Errorf("%d events, %d lost", len(rows), lost)
	}
	r.sub(0).events <- event("x")
	await(tailEvents + 1)
	if rows, lost, _, _ := one.since(0); len(rows) != tailEvents || lost != 1 || rows[0].Number != 2 {
		t.Errorf("%d events, %d lost", len(rows), lost)
	}
	if rows, lost, _, _ := one.since(1); len(rows) != tailEvents || lost != 0 {
		t.Errorf("behind the first: %d events, %d lost", len(rows), lost)
	}
	f := func(id string, number uint64, ok bool) {
		t.Helper()
		if n, got := one.place(id); got != ok || ok && n != number {
			t.Errorf("place(%q) = %d, %v", id, n, got)
		}
	}
	f(one.id(5), 5, true)
	f(one.id(tailEvents+1), tailEvents+1, true)
	f(one.id(tailEvents+2), 0, false)
	f("", 0, false)
	f(one.epoch+"-x", 0, false)
	r.tails.leave(one)
}

// TestTails: lists of types are followed up to a bound; one without a viewer makes room, and ends
// by itself.
func TestTails(t *testing.T) {
	r := newRig(t)
	r.tails.linger = time.Hour
	open := func(name string) *tail {
		t.Helper()
		one, err := r.tails.open(context.Background(), []string{name})
		if err != nil {
			t.Fatal(name, err)
		}
		return one
	}
	var all []*tail
	for i := range maxTails {
		all = append(all, open(fmt.Sprint("t", i)))
	}
	if open("t0") != all[0] {
		t.Error("viewers of one list have two tails")
	}
	if _, err := r.tails.open(context.Background(), []string{"other"}); !errors.Is(err, errTails) {
		t.Errorf("one list too many: %v", err)
	}
	want(t, r.get(root+"topic?type=other"), 503, "are followed already")
	r.tails.leave(all[1])
	open("other")
	<-r.sub(1).closed
	r.tails.linger = 0
	r.tails.leave(all[2])
	<-r.sub(2).closed
	r.mu.Lock()
	r.refuse = errors.New("too many streams")
	r.mu.Unlock()
	if _, err := r.tails.open(context.Background(), []string{"refused"}); err == nil || err.Error() != "too many streams" {
		t.Errorf("a refused subscription: %v", err)
	}
	r.Close()
	if _, err := r.tails.open(context.Background(), []string{"late"}); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestStreams: live views are open up to a bound, and end with the console.
func TestStreams(t *testing.T) {
	r := newRig(t)
	base := r.serve()
	var all []*feed
	for range maxStreams {
		f := follow(t, base+root+"live", "")
		f.wantRow("values", `"bad-dropped":"","bad-errors":"yes"`)
		all = append(all, f)
	}
	want(t, r.get(root+"live"), 503, "16 live views are open")
	all[0].end()
	for {
		w := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if r.Guard(r).ServeHTTP(w, request("GET", root+"live", nil).WithContext(ctx)); w.Code == 200 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.Close()
	for _, f := range all[1:] {
		if _, name, _ := f.next(); name != "" {
			t.Errorf("%s after the end", name)
		}
	}
}

// TestLiveNeedsALogin as all pages do.
func TestLiveNeedsALogin(t *testing.T) {
	r := newRig(t, withTokens)
	want(t, r.get(root+"live"), 401, "")
	want(t, r.get(root+"topic/live?type=a"), 401, "")
	want(t, r.do(bearer(request("GET", root+"topic/live?type=", nil), viewToken)), 400, "1 to 16 types")
	want(t, r.do(bearer(request("HEAD", root+"live", nil), viewToken)), 405, "asked for by GET")
}

// TestOverviewRates: rates are since the start at first, then over at most a minute.
func TestOverviewRates(t *testing.T) {
	r := newRig(t)
	f := func(over, requests, errs float64) {
		t.Helper()
		o := r.rates.take()
		if o.Rates.OverSeconds != over || o.Rates.Requests != requests || o.Rates.Errors != errs {
			t.Errorf("%+v, want %v s, %v and %v per second", o.Rates, over, requests, errs)
		}
	}
	add := func(pass time.Duration, count, errs uint64) {
		r.clock.pass(pass)
		r.mu.Lock()
		defer r.mu.Unlock()
		l := r.overview.Latencies[0]
		l.Count, l.Errors = l.Count+count, l.Errors+errs
		r.overview.Latencies = []obs.Latency{l, {Protocol: obs.StepProtocol, Method: "store_commit", Count: 1 << 20}}
		r.overview.UptimeSeconds += pass.Seconds()
	}
	f(10, 2, 0.1)
	add(sampleEvery/2, 100, 0)
	f(10, 2, 0.1) // the reading before serves again
	add(sampleEvery/2, 0, 0)
	f(1, 100, 0)
	add(9*time.Second, 50, 5)
	f(10, 15, 0.5)
	add(rateOver-5*time.Second, 55, 0)
	f(55, 1, 0)
}

// TestSamples: readings are kept for a minute, and one that was just made serves again.
func TestSamples(t *testing.T) {
	r := newRig(t)
	const most = int(rateOver/sampleEvery) + 1
	for range 2 * most {
		r.rates.take()
		r.clock.pass(sampleEvery)
	}
	if n := len(r.rates.samples); n != most {
		t.Errorf("%d samples, at most %d", n, most)
	}
	if o := r.rates.take(); o.Rates.OverSeconds != rateOver.Seconds() {
		t.Errorf("a rate over %v s, want a minute", o.Rates.OverSeconds)
	}
	r.overview.Latencies = make([]obs.Latency, maxMethods+1)
	r.clock.pass(sampleEvery)
	if n := len(r.rates.take().Latencies); n != maxMethods {
		t.Errorf("%d methods, want %d", n, maxMethods)
	}
}
