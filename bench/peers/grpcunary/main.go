// Command grpcunary serves one unary method on grpc-go with a constant reply.
package main

import (
	"flag"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"trunkline/bench/peers/internal/echo"
	"trunkline/bench/peers/internal/peer"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	reply := flag.Int("reply", 174, "bytes of the constant reply")
	flag.Parse()

	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		peer.Fatal(err)
	}
	s := grpc.NewServer()
	echo.Register(s, &echo.Service{Reply: wrapperspb.Bytes(make([]byte, *reply))})
	peer.ExitOnSignal()
	peer.Announce(ln.Addr().String())
	if err := s.Serve(ln); err != nil {
		peer.Fatal(err)
	}
}
