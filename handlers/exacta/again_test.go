package exacta

import (
	"fmt"
	"testing"
)

// TestClosedAndOpened: an open right behind a close, again and again: its event comes each time.
func TestClosedAndOpened(t *testing.T) {
	s, dir := newServer(t), newRoot(t)
	p := newPeer(t, s, 1)
	p.send(ask(0, "OpenProject", `"path":"`+dir+`"`))
	p.want(2, "LogEntry1 100:ok")
	for i := 1; i <= 100; i++ {
		p.send(ask(2*i-1, "CloseProject", ""), ask(2*i, "OpenProject", `"path":"`+dir+`"`))
		p.want(3, fmt.Sprintf("1%02x:ok LogEntry%d 1%02x:ok", 2*i-1, i+1, 2*i))
	}
}
