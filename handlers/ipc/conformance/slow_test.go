package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
)

// flood is twice what the sockets between a server and a slow peer can hold, in messages of 64 KiB.
const flood = 200

// slowPeer starts a server with a small stream buffer and a connection that has sent one request
// and reads nothing.
func slowPeer(t *testing.T, request string, opts ...ipctest.Option) (*ipcclient.Conn, *wireConn) {
	t.Helper()
	small := ipctest.With(func(c *ipctest.Config) { c.StreamBufferEvents = 8 })
	srv := ipctest.Start(t, append([]ipctest.Option{small}, opts...)...)
	slow, err := dialSlow(srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.close)
	payload, err := transcode.EncodeJSON([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	if err := whole(slow.nc, appendFrame(nil, 0x01, payload)); err != nil {
		t.Fatal(err)
	}
	fast, err := ipcclient.Dial(t.Context(), srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fast.Close() })
	return fast, slow
}

func numberedPayload(n int) string {
	return fmt.Sprintf(`{"n":%d,"pad":"%s"}`, n, strings.Repeat("x", 64<<10))
}

// TestSlowReaderSeesGaps floods a subscriber that does not read (kernel-ipc §4.18): what was
// counted as delivered arrives, and a gap stands exactly where events are missing, with their
// number.
func TestSlowReaderSeesGaps(t *testing.T) {
	fast, slow := slowPeer(t, `{"id":"s","service":"commbus","method":"Subscribe","body":{"event_types":["e"]}}`)
	awaitSubscriber(t, fast)
	delivered := 0
	for i := range flood {
		d, err := fast.Publish(t.Context(), ipcclient.Publish{EventType: "e", Payload: numberedPayload(i), Source: "t"})
		if err != nil || d.Delivered > 1 {
			t.Fatalf("event %d: delivered %d, %v", i, d.Delivered, err)
		}
		delivered += int(d.Delivered)
	}
	if delivered == flood || delivered < 8 {
		t.Fatalf("%d of %d events were taken from a buffer of 8", delivered, flood)
	}
	slow.start()
	got, next := 0, 0
	for next < flood {
		event, payload := nextEvent(t, slow)
		switch event {
		case "e":
			if payload.N != next {
				t.Fatalf("event %d came where %d was due", payload.N, next)
			}
			got, next = got+1, next+1
		case "commbus.gap":
			if payload.Dropped < 1 {
				t.Fatalf("a gap of %d", payload.Dropped)
			}
			next += payload.Dropped
		default:
			t.Fatalf("unexpected %s", event)
		}
	}
	if next != flood || got != delivered {
		t.Fatalf("%d events came, %d were counted as delivered; the numbers add up to %d of %d", got, delivered, next, flood)
	}
	if d, err := fast.Publish(t.Context(), ipcclient.Publish{EventType: "e", Payload: numberedPayload(flood)}); d.Delivered != 1 || err != nil {
		t.Fatalf("with room again: delivered %d, %v", d.Delivered, err)
	}
	if event, payload := nextEvent(t, slow); event != "e" || payload.N != flood {
		t.Fatalf("got %s %+v", event, payload)
	}
}

// TestFullHandlerRefusesItsSender: a handler never loses a command silently (kernel-ipc §4.16,
// §4.20).
func TestFullHandlerRefusesItsSender(t *testing.T) {
	fast, slow := slowPeer(t,
		`{"id":"h","service":"commbus","method":"RegisterCommandHandler","body":{"command_types":["e"],"handler_id":"h"}}`)
	awaitHandler(t, fast)
	taken, refused := 1, 0
	for i := 1; i < flood; i++ {
		_, err := fast.Send(t.Context(), ipcclient.Send{CommandType: "e", Payload: numberedPayload(i)})
		var said *ipcclient.Error
		switch {
		case err == nil:
			taken++
		case errors.As(err, &said):
			want := ipcclient.Error{Code: wire.ResourceExhausted, Message: "Handler buffer is full for command type: e", Retryable: true}
			if *said != want {
				t.Fatalf("command %d: %+v", i, said)
			}
			refused++
		default:
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Fatal("no command was refused")
	}
	slow.start()
	if f, why := slow.next("h", true, patience); why != "" || f.twin != `{"id":"h","body":{"registered":["e"],"handler_id":"h"}}` {
		t.Fatalf("got %s %s", f.twin, why)
	}
	for i := range taken {
		if f, why := slow.next("h", true, patience); why != "" || f.name() != "STREAM_CHUNK" {
			t.Fatalf("command %d of %d: %s %s", i, taken, f.name(), why)
		}
	}
	if _, why := slow.next("h", true, patience/100); why != nothing {
		t.Fatalf("more commands came than were taken: %s", why)
	}
}

// TestSlowReaderHurtsNobodyElse: another subscriber of the same events misses none.
func TestSlowReaderHurtsNobodyElse(t *testing.T) {
	fast, _ := slowPeer(t, `{"id":"s","service":"commbus","method":"Subscribe","body":{"event_types":["e"]}}`)
	awaitSubscriber(t, fast)
	sub, err := fast.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"e"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range flood {
		if _, err := fast.Publish(t.Context(), ipcclient.Publish{EventType: "e", Payload: numberedPayload(i)}); err != nil {
			t.Fatal(err)
		}
		event, err := sub.Next(t.Context())
		if err != nil || event.EventType != "e" || event.Payload != numberedPayload(i) {
			t.Fatalf("event %d: %s, %v", i, event.EventType, err)
		}
	}
}

// TestServerWideStreamBuffer: over stream_buffer_total_bytes a stream with a backlog counts as
// full, one without goes on (kernel-ipc §6).
func TestServerWideStreamBuffer(t *testing.T) {
	fast, _ := slowPeer(t, `{"id":"s","service":"commbus","method":"Subscribe","body":{"event_types":["e"]}}`,
		ipctest.With(func(c *ipctest.Config) {
			c.StreamBufferEvents, c.StreamBufferBytes, c.StreamBufferTotalBytes = 1<<20, 1<<30, 1<<20
		}))
	awaitSubscriber(t, fast)
	sub, err := fast.Subscribe(t.Context(), ipcclient.Subscribe{EventTypes: []string{"e"}})
	if err != nil {
		t.Fatal(err)
	}
	both := 0
	for i := range flood {
		d, err := fast.Publish(t.Context(), ipcclient.Publish{EventType: "e", Payload: numberedPayload(i)})
		if err != nil || d.Delivered < 1 {
			t.Fatalf("event %d: delivered %d, %v", i, d.Delivered, err)
		}
		if d.Delivered == 2 {
			both++
		}
		if event, err := sub.Next(t.Context()); err != nil || event.Payload != numberedPayload(i) {
			t.Fatalf("event %d: %s, %v", i, event.EventType, err)
		}
	}
	if both == flood || both < 16 {
		t.Fatalf("the slow subscription took %d of %d events into a megabyte", both, flood)
	}
}

type numberedEvent struct {
	N       int `json:"n"`
	Dropped int `json:"dropped"`
}

func nextEvent(t *testing.T, c *wireConn) (event string, payload numberedEvent) {
	t.Helper()
	f, why := c.next("s", true, patience)
	if why != "" || f.flaw != "" {
		t.Fatalf("no event: %s %s", why, f.flaw)
	}
	body := parseTwin(f.twin).get("body")
	if err := json.Unmarshal([]byte(body.get("payload").text()), &payload); err != nil {
		t.Fatal(err)
	}
	return body.get("event_type").text(), payload
}

// awaitSubscriber waits until the server has taken a request that the slow connection sent.
func awaitSubscriber(t *testing.T, c *ipcclient.Conn) {
	t.Helper()
	for {
		status, err := c.GetSystemStatus(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if status.Commbus.ActiveSubscribers == 1 {
			return
		}
	}
}

func awaitHandler(t *testing.T, c *ipcclient.Conn) {
	t.Helper()
	for {
		_, err := c.Send(t.Context(), ipcclient.Send{CommandType: "e"})
		var said *ipcclient.Error
		if err == nil {
			return
		}
		if !errors.As(err, &said) || said.Code != wire.NotFound {
			t.Fatal(err)
		}
	}
}
