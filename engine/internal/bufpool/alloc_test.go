//go:build !race

package bufpool

import "testing"

func TestGetPutNoAllocs(t *testing.T) {
	p := New(0)
	data := make([]byte, 1024)
	if n := testing.AllocsPerRun(1000, func() {
		b := p.Get()
		b.B = append(b.B, data...)
		p.Put(b)
	}); n != 0 {
		t.Errorf("a warm Get and Put allocate %v times", n)
	}
}
