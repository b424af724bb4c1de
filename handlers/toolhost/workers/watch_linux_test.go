package workers

import "testing"

// TestWatch: the order in which a worker took and wrote, however late one looks.
func TestWatch(t *testing.T) {
	var in, out pipe
	for _, p := range []*pipe{&in, &out} {
		if err := p.open(); err != nil {
			t.Fatal(err)
		}
		defer p.close()
	}
	o, err := newWatch(in.w, in.r, out.r)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	buf := make([]byte, 64)
	steps := map[rune]func(){
		's': func() { _, _ = in.w.WriteString("{}\n") }, // we send
		't': func() { _, _ = in.r.Read(buf) },           // the worker takes it
		'h': func() { _, _ = in.r.Read(buf[:1]) },       // a part of it
		'w': func() { _, _ = out.w.WriteString("x\n") }, // it writes
		'r': func() { _, _ = out.r.Read(buf) },          // we read that
		'l': func() { o.look() },                        // we look
	}
	f := func(what, want string) {
		t.Helper()
		for _, step := range what {
			steps[step]()
		}
		took, spoke, first := o.look()
		got := ""
		if took {
			got += "T"
		}
		if spoke {
			got += "S"
		}
		if first {
			got += "F"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if spoke {
			_, _ = out.r.Read(buf)
		}
		o.look()
	}
	f("", "T") // it may be sent to
	f("s", "")
	f("t", "T")
	f("stw", "TS")
	f("swt", "TSF")
	f("sw", "SF")
	f("t", "T")
	f("sh", "")
	f("w", "SF")
	f("t", "T")
	f("stl", "")
	f("w", "SF") // ask knows that it was taken
	f("stwr", "T")
	f("stww", "TS")
	if !canWatch() {
		t.Error("this system does not tell the order")
	}
}
