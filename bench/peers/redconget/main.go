// Command redconget answers GET and SET on tidwall/redcon over a map under a read-write lock, the
// way redcon's own example does.
package main

import (
	"strings"
	"sync"

	"github.com/tidwall/redcon"

	"trunkline/bench/peers/internal/peer"
)

type store struct {
	mu   sync.RWMutex
	rows map[string][]byte
}

func (s *store) serve(c redcon.Conn, cmd redcon.Command) {
	switch name := strings.ToLower(string(cmd.Args[0])); {
	case name == "get" && len(cmd.Args) == 2:
		s.mu.RLock()
		v, ok := s.rows[string(cmd.Args[1])]
		s.mu.RUnlock()
		if !ok {
			c.WriteNull()
			return
		}
		c.WriteBulk(v)
	case name == "set" && len(cmd.Args) == 3:
		s.mu.Lock()
		s.rows[string(cmd.Args[1])] = append([]byte(nil), cmd.Args[2]...)
		s.mu.Unlock()
		c.WriteString("OK")
	default:
		c.WriteError("ERR cannot serve command '" + name + "'")
	}
}

func main() {
	s := &store{rows: make(map[string][]byte)}
	err := redcon.Serve(peer.Listen(), s.serve, func(redcon.Conn) bool { return true }, func(redcon.Conn, error) {})
	if err != nil {
		peer.Fatal(err)
	}
}
