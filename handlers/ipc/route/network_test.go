package route_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/cluster/upstream"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ipc/route"
)

func request(id, service, method, body string) []byte {
	value, err := transcode.EncodeJSON([]byte(body))
	if err != nil {
		panic(err)
	}
	return frame.Append(nil, frame.Request, mpack.AppendRequest(nil, id, service, method, string(value)), nil)
}

// exchange sends bytes and a last request, and returns what came until its reply, or before the end
// of the connection. late: the reply to the bytes may come after the last one.
func exchange(t *testing.T, addr string, in []byte, late bool) (out []byte, closed bool) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = nc.Write(append(bytes.Clone(in), request("end", "kernel", "GetProcess", `{"pid":"ghost"}`)...))
	buf, ended := make([]byte, 4096), false
	for {
		n, err := nc.Read(buf)
		if out = append(out, buf[:n]...); ended && len(out) > 0 {
			return out, false
		}
		if i := bytes.Index(out, []byte("\x83\xa2id\xa3end")) - frame.HeaderSize; i >= 0 {
			rest := out[i+frame.Len(out[i:]):]
			if out = append(out[:i:i], rest...); !late || len(out) > 0 {
				return out, false
			}
			ended = true
			continue
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return out, true
		}
		if err != nil {
			t.Fatalf("after %x: %v", out, err)
		}
	}
}

// TestBadInput: a router answers what is wrong with the bytes of one server, and closes when that
// does.
func TestBadInput(t *testing.T) {
	t.Parallel()
	small := ipctest.With(func(c *ipctest.Config) { c.MaxFrameBytes = 1 << 16 })
	direct := ipctest.Start(t, small)
	routed := ipctest.Start(t, small, ipctest.With(func(c *ipctest.Config) { c.Partitions = 3 }))
	payload := func(p string) []byte { return frame.Append(nil, frame.Request, []byte(p), nil) }
	good := request("x", "kernel", "GetProcess", `{"pid":"p"}`)
	inputs := map[string][]byte{
		"length 0":          {0, 0, 0, 0},
		"length too large":  {0, 1, 0, 1},
		"largest frame":     frame.Append(nil, frame.Request, make([]byte, 1<<16-1), nil),
		"type 2":            frame.Append(nil, 2, []byte{0xc0}, nil),
		"type 0":            frame.Append(nil, 0, nil, nil),
		"type 255":          frame.Append(nil, 0xff, []byte("\xc1"), nil),
		"empty":             payload(""),
		"never used":        payload("\xc1"),
		"cut map":           good[:len(good)-2],
		"trailing byte":     append(payload(string(good[frame.HeaderSize:])+"x"), good...),
		"bin":               payload("\x81\xa2id\xc4\x01x"),
		"ext":               payload("\x81\xa2id\xd4\x01x"),
		"int key":           payload("\x81\x01\x02"),
		"bad UTF-8":         payload("\x81\xa2id\xa1\xff"),
		"513 levels":        payload("\x84\xa2id\xa1x\xa7service\xa1s\xa6method\xa1m\xa4body" + strings.Repeat("\x81\xa1a", 512) + "\xc0"),
		"nil":               payload("\xc0"),
		"array":             payload("\x90"),
		"id is 7":           payload("\x84\xa2id\x07\xa7service\xa1s\xa6method\xa1m\xa4body\x80"),
		"no service":        payload("\x83\xa2id\xa1x\xa6method\xa1m\xa4body\x80"),
		"empty method":      payload("\x84\xa2id\xa1x\xa7service\xa1s\xa6method\xa0\xa4body\x80"),
		"no body":           payload("\x83\xa2id\xa1x\xa7service\xa1s\xa6method\xa1m"),
		"body is an array":  payload("\x84\xa2id\xa1x\xa7service\xa1s\xa6method\xa1m\xa4body\x90"),
		"service Kernel":    request("x", "Kernel", "GetProcess", `{}`),
		"method getProcess": request("x", "kernel", "getProcess", `{}`),
		"repeated key":      payload("\x84\xa2id\xa1x\xa7service\xa6kernel\xa6method\xaaGetProcess\xa4body\x82\xa3pid\xa1a\xa3pid\x07"),
		"broken after key":  payload("\x84\xa2id\xa1x\xa7service\xa6kernel\xa6method\xaaGetProcess\xa4body\x82\xa3pid\xa1a\xa1b\xc1"),
		"good, then bad":    append(bytes.Clone(good), 0, 0, 0, 0),
		"bad, then good":    append([]byte{0, 0, 0, 0}, good...),
	}
	for _, body := range []string{
		"kernel.CreateProcess {}", `kernel.CreateProcess {"pid":5}`, `kernel.CreateProcess {"pid":""}`, `kernel.CreateProcess {"pid":"a","priority":3}`,
		`kernel.RecordUsage {"pid":"a","llm_calls":-5}`, `kernel.TransitionState {"pid":"a","new_state":"FOO"}`, `kernel.CheckRateLimit {"user_id":""}`,
		`kernel.CheckRateLimit {}`, `kernel.SetQuotaDefaults {"quota":"x"}`, `kernel.SetQuotaDefaults {"quota":{"max_llm_calls":3000000000}}`,
		`kernel.ListProcesses {"limit":0}`, `kernel.ListProcesses {"state":"x","limit":1.5}`, `kernel.GetNextRunnable {"start":"x"}`, `kernel.GetNextRunnable {}`,
		`kernel.GetSystemStatus {"digest":"x"}`, `commbus.Publish {"event_type":"commbus.gap"}`, `commbus.Publish {}`, `commbus.Publish {"event_type":"a","payload":"{bad"}`,
		`commbus.Send {"command_type":"a"}`, `commbus.Query {"query_type":"a"}`, `commbus.Query {"query_type":7}`, `commbus.Query {"query_type":"a","timeout_ms":1.5}`,
		`commbus.Subscribe {}`, `commbus.Subscribe {"event_types":["a",5]}`, `commbus.Subscribe {"event_types":["a"],"ack":1}`, `commbus.Subscribe {"event_types":["a"],"subscriber_id":1}`,
		`commbus.RegisterCommandHandler {"command_types":"a"}`, `commbus.Unsubscribe {}`, `commbus.Unsubscribe {"stream_id":"a","subscriber_id":"b"}`,
		`commbus.Unsubscribe {"stream_id":1}`, `commbus.Reply {}`, `commbus.Reply {"query_id":"x","result":"{"}`, `engine.UpdateEnvelope {}`, `engine.UpdateEnvelope {"envelope":"{bad"}`,
		`engine.UpdateEnvelope {"envelope":{"x":1}}`, `engine.ExecutePipeline {"envelope":{"envelope_id":""},"pipeline_config":{}}`, `engine.CloneEnvelope {"envelope":[]}`,
		`engine.CheckBounds {"envelope_id":"e"}`, `orchestration.GetNextInstruction {"process_id":7}`, `orchestration.InitializeSession {"process_id":"a"}`,
	} {
		method, fields, _ := strings.Cut(body, " ")
		service, name, _ := strings.Cut(method, ".")
		inputs[body] = request("x", service, name, fields)
	}
	for name, in := range inputs {
		late := strings.HasPrefix(name, "commbus.Query") // the answer to a query has no order
		want, wantClosed := exchange(t, direct.Addr, in, late)
		got, gotClosed := exchange(t, routed.Addr, in, late)
		if !bytes.Equal(got, want) || gotClosed != wantClosed {
			t.Errorf("%s: closed %v, %q\nwant closed %v, %q", name, gotClosed, got, wantClosed, want)
		}
	}
}

// TestMaxConnections: clients are taken up to the limit, also after it was changed; those above a
// lower one stay.
func TestMaxConnections(t *testing.T) {
	r, err := route.New(
		route.Config{
			Config:         upstream.Config{Partitions: 2},
			MaxConnections: 1,
			Refuse:         func(dst []byte) []byte { return append(dst, "full"...) },
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	ln := listen(t)
	served := make(chan error, 1)
	go func() { served <- r.Serve(ln) }()
	var open int64
	f := func(taken bool) {
		t.Helper()
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		if !taken {
			if got, _ := io.ReadAll(nc); string(got) != "full" {
				t.Errorf("one too many gets %q", got)
			}
		} else {
			open++
		}
		for end := time.Now().Add(time.Minute); r.Stats().Clients != open; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d clients, want %d", r.Stats().Clients, open)
			}
		}
	}
	f(true)
	f(false)
	r.SetMaxConnections(2)
	f(true)
	f(false)
	r.SetMaxConnections(1)
	f(false)
	if err := errors.Join(r.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
}

// legs are the connections of a router to servers, which a test can break.
type legs struct {
	mu    sync.Mutex
	addrs []string
	open  []net.Conn
	owns  context.Context
	lose  context.CancelFunc
}

func (l *legs) dial(ctx context.Context, partition int, _ string) (net.Conn, context.Context, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", l.addrs[partition])
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.open = append(l.open, nc)
	}
	return nc, l.owns, err
}

// breakAll closes all legs, as lost connections or as lost partitions.
func (l *legs) breakAll(partitions bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if partitions {
		l.lose()
		l.owns, l.lose = context.WithCancel(context.Background())
	}
	for _, nc := range l.open {
		if !partitions {
			_ = nc.Close()
		}
	}
	l.open = nil
}

// TestReconnect: clients over legs that break lose their connection at most, never an answer, and
// go on with a new one.
func TestReconnect(t *testing.T) {
	t.Parallel()
	l := &legs{}
	l.owns, l.lose = context.WithCancel(context.Background())
	defer func() { l.lose() }()
	for range 3 {
		l.addrs = append(l.addrs, ipctest.Start(t).Addr)
	}
	r, err := route.New(route.Config{Config: upstream.Config{Partitions: 3, Dial: l.dial}})
	if err != nil {
		t.Fatal(err)
	}
	certificates := httptest.NewTLSServer(nil)
	certificates.Close()
	plain, secured := listen(t), tls.NewListener(listen(t), certificates.TLS)
	trust := certificates.Client().Transport.(*http.Transport).TLSClientConfig
	var served sync.WaitGroup
	for _, ln := range []net.Listener{plain, secured} {
		served.Go(func() { _ = r.Serve(ln) })
	}
	defer served.Wait()
	defer func() {
		if err := r.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	var users sync.WaitGroup
	for u := range 4 {
		addr, opts := plain.Addr().String(), []ipcclient.Option(nil)
		if u%2 == 1 {
			addr, opts = secured.Addr().String(), []ipcclient.Option{ipcclient.WithTLS(trust)}
		}
		users.Go(func() { use(t, addr, opts, fmt.Sprint("user", u), 5*rounds) })
	}
	for i := range rounds {
		time.Sleep(20 * time.Millisecond)
		l.breakAll(i%2 == 0)
	}
	users.Wait()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// use makes calls about some processes and compares what is acknowledged with what is kept.
func use(t *testing.T, addr string, opts []ipcclient.Option, name string, calls int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var c *ipcclient.Conn
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	least, most := map[string]int64{}, map[string]int64{}
	for i := range calls {
		pid := fmt.Sprint(name, "-", i%5)
		for {
			if c == nil {
				var err error
				if c, err = ipcclient.Dial(ctx, addr, opts...); err != nil {
					t.Error(err)
					return
				}
			}
			if most[pid] == 0 {
				_, _ = c.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
			}
			most[pid]++
			u, err := c.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 1})
			if err == nil {
				if least[pid]++; u.LLMCalls < least[pid] || u.LLMCalls > most[pid] {
					t.Errorf("%s has %d calls, want %d to %d", pid, u.LLMCalls, least[pid], most[pid])
				}
				break
			}
			if ctx.Err() != nil {
				t.Error(err)
				return
			}
			if lost := (*ipcclient.ConnError)(nil); errors.As(err, &lost) {
				_ = c.Close()
				c = nil
			} else {
				most[pid]-- // refused: the process was not created
			}
		}
	}
}

// TestHold: requests whose partition has no owner are refused when Config.Hold is over, and may be
// repeated; then the connection ends.
func TestHold(t *testing.T) {
	t.Parallel()
	held := make(chan bool, 1)
	r, err := route.New(route.Config{Config: upstream.Config{Partitions: 2, Hold: 50 * time.Millisecond,
		Dial: func(ctx context.Context, _ int, _ string) (net.Conn, context.Context, error) {
			_, bounded := ctx.Deadline()
			held <- bounded
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}}})
	if err != nil {
		t.Fatal(err)
	}
	ln := listen(t)
	var served sync.WaitGroup
	served.Go(func() { _ = r.Serve(ln) })
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	get := func(id string) []byte { return request(id, "kernel", "GetProcess", `{"pid":"p"}`) }
	_, _ = nc.Write(append(get("1"), get("2")...))
	out, err := io.ReadAll(nc)
	refusal := func(id string) []byte {
		return frame.Append(nil, frame.Error, mpack.AppendError(nil, []byte(id), "UNAVAILABLE", "No node serves the partition now; try again", mpack.Extras{Retryable: true}), nil)
	}
	if want := append(refusal("1"), refusal("2")...); !<-held || err != nil || !bytes.Equal(out, want) {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
	if err := r.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if n := r.Stats(); n != (route.Stats{Broken: 1}) {
		t.Errorf("stats at the end: %+v", n)
	}
	served.Wait()
}
