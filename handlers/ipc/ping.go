package ipc

import (
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc/message"
)

const (
	// maxPingPayload bounds the value that Ping returns, in bytes of its smallest encoding: room
	// for a clock reading or an identifier.
	maxPingPayload = 1024
	// widest is the size of the largest encoding of a value that fits one byte.
	widest = 9
	// maxInFlight is how many unanswered requests of a connection a server has to read (kernel-ipc
	// §2.5).
	maxInFlight = 64
	// protocol is the version of the protocol.
	protocol = 1
)

func newPong(s *Service) message.Pong {
	return message.Pong{
		Server: "trunkline", Version: s.cfg.Version, Protocol: protocol, Extensions: extensions,
		Limits: message.PingLimits{
			MaxFrameBytes: int64(s.maxFrame), MaxInFlight: maxInFlight, ReadTimeoutSecs: int64(s.cfg.ReadTimeout / time.Second),
		},
	}
}

// ping is kernel.Ping (kernel-ipc §11). It returns the payload in the profile of server messages.
func ping(t *turn) wire.Code {
	var payload []byte
	members := mpack.OpenMap(t.req.Body)
	for _, key, raw, ok := members.Next(); ok; _, key, raw, ok = members.Next() {
		if string(key) == "payload" {
			payload = raw
		}
	}
	if len(payload) <= widest*maxPingPayload {
		t.msg = mpack.AppendValue(t.msg[:0], payload)
	}
	if len(payload) > widest*maxPingPayload || len(t.msg) > maxPingPayload {
		t.bad("payload", " exceeds 1024 bytes")
		return wire.InvalidArgument
	}
	pong := t.svc.pong
	pong.Pong = t.msg
	t.out, _ = pong.MarshalMsg(t.out)
	return wire.OK
}
