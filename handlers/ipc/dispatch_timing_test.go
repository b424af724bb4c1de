package ipc

import "testing"

// Question: how long does it take to find the row of a request's method by the bytes of both its
// names, and that there is none?

func BenchmarkDispatch(b *testing.B) {
	r := newRig(b)
	list := Methods()
	names := make([][2][]byte, len(list))
	for i, m := range list {
		names[i] = [2][]byte{[]byte(m.Service), []byte(m.Name)}
	}
	b.Run("served", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if n := names[i%len(names)]; r.svc.routes.find(n[0], n[1]) == nil {
				b.Fatalf("no row for %s.%s", n[0], n[1])
			}
		}
	})
	b.Run("unknown", func(b *testing.B) {
		service, name := []byte("kernel"), []byte("GetProcesses")
		b.ReportAllocs()
		for b.Loop() {
			if r.svc.routes.find(service, name) != nil {
				b.Fatalf("a row for %s", name)
			}
		}
	})
}
