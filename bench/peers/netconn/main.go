// Command netconn does the work of baregnet with the standard library: one goroutine per
// connection, buffered reads, and one flush when no whole frame is left in the buffer.
package main

import (
	"net"

	"trunkline/bench/peers/internal/peer"
)

func main() {
	replies := peer.NewReplies(peer.Reply())
	ln := peer.Listen()
	for {
		c, err := ln.Accept()
		if err != nil {
			peer.Fatal(err)
		}
		go serve(c, &replies)
	}
}

// serve answers until the client leaves. The buffer doubles as carry: what is left of a frame moves
// to its front.
func serve(c net.Conn, replies *peer.Replies) {
	defer c.Close()
	buf, held := make([]byte, 64<<10), 0
	for {
		n, err := c.Read(buf[held:])
		if err != nil {
			return
		}
		held += n
		count, used, ok := peer.Frames(buf[:held])
		if !ok {
			return
		}
		held = copy(buf, buf[used:held])
		if held == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		for count > 0 {
			out, taken := replies.Take(count)
			if _, err := c.Write(out); err != nil {
				return
			}
			count -= taken
		}
	}
}
