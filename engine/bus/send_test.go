package bus

import "testing"

func TestSend(t *testing.T) {
	b := newBus(t, Config{StreamBufferEvents: 2, MaxBody: 10})
	f := func(why, typ, body string, want Outcome) {
		t.Helper()
		if got := b.Send([]byte(typ), message(b, body)); got != want {
			t.Errorf("%s: outcome %d, want %d", why, got, want)
		}
	}
	f("nobody there", "run", "1", NoHandler)
	p := &port{}
	h, _ := b.Handle(CommandHandler, p, []string{"run"}, 4)
	b.Handle(QueryHandler, &port{}, []string{"ask"}, 4)
	f("a query handler takes no commands", "ask", "1", NoHandler)
	f("frame at the bound", "run", "123456", Sent)
	f("frame over the bound", "run", "1234567", TooLarge)
	f("second", "run", "2", Sent)
	f("full", "run", "3", BufferFull)
	f("too large comes before full", "run", "1234567", TooLarge)
	wantPop(t, "no gap in a handler's stream", h, "123456 2")
	f("room again", "run", "4", Sent)
	if got := p.wakes.Load(); got != 2 {
		t.Errorf("woken %d times, want 2", got)
	}
	h.Detach()
	f("handler is ending", "run", "5", NoHandler)
	wantPop(t, "what was buffered", h, "4")
	if got := b.Stats(); got.CommandsSent != 3 || got.DroppedEvents != 0 || got.BufferedBytes != 0 {
		t.Errorf("stats = %+v", got)
	}
}

func TestSendOverTotal(t *testing.T) {
	b := newBus(t, Config{StreamBufferTotalBytes: held})
	s := b.Subscribe(&port{}, []string{"a"}, 0)
	h, _ := b.Handle(CommandHandler, &port{}, []string{"run"}, 0)
	publish(b, "a", "1234")
	f := func(why string, want Outcome) {
		t.Helper()
		if got := b.Send([]byte("run"), message(b, "x")); got != want {
			t.Errorf("%s: outcome %d, want %d", why, got, want)
		}
	}
	f("the total is taken", BufferFull)
	wantPop(t, "the subscriber", s, "1234")
	f("room again", Sent)
	f("at the bound", BufferFull)
	wantPop(t, "the one", h, "x")
	wantBuffered(t, b, 0)
}

// A stream that is registered but not open yet is no handler: all its types appear together.
func TestSendToUnopened(t *testing.T) {
	b := newBus(t, Config{})
	s := b.newStream(CommandHandler, &port{}, []string{"run"}, nil, 0, 0)
	b.registry.addHandler("run", s)
	if got := b.Send([]byte("run"), message(b, "x")); got != NoHandler {
		t.Errorf("outcome %d, want NoHandler", got)
	}
	wantBuffered(t, b, 0)
}
