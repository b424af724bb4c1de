//go:build !race

package reactor

import (
	"runtime"
	"testing"
)

// An idle connection on a loop holds no buffer; what it holds must stay within the 4 KiB of goal
// G10, the client's end of the connection in this process included.
func TestMemoryPerIdleConnection(t *testing.T) {
	s, made := startMirror(t)
	const conns = 500
	before := heap()
	peers := make([]*peer, conns)
	for i := range peers {
		peers[i] = s.dial()
		peers[i].session0()
		<-made
	}
	each := (heap() - before) / conns
	t.Logf("%d bytes per idle connection", each)
	if each > 4<<10 {
		t.Errorf("%d bytes per idle connection, want at most 4096", each)
	}
	runtime.KeepAlive(peers)
}

// session0 has the server read and answer once.
func (p *peer) session0() {
	p.send([]byte{0, 0, 0, 1, 'e'})
	p.want('e', "")
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
