package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Lengths of the handshake, in bytes.
const (
	magic       = "TLKP\x01"
	nonceBytes  = 16
	maxText     = 255
	maxHeader   = 4 * (1 + maxText)
	minSecret   = 16
	labelServer = "server"
	labelClient = "client"
)

// MinSecretBytes is the shortest secret of a cluster.
const MinSecretBytes = minSecret

// Refusal is why a node does not take a connection.
type Refusal uint8

const (
	accepted Refusal = iota
	// WrongSecret: the nodes have different secrets, or are of different clusters.
	WrongSecret
	// NotOwner: the node does not own the service, or not any more. The caller asks for the owner
	// again.
	NotOwner
	// Full: the node has as many connections as it takes.
	Full
)

// Error implements error.
func (r Refusal) Error() string {
	switch r {
	case WrongSecret:
		return "the other node is of another cluster, or has another secret"
	case NotOwner:
		return "the other node does not own the service"
	case Full:
		return "the other node has no room for another connection"
	}
	return fmt.Sprintf("the other node refuses with status %d", uint8(r))
}

// errHandshake means that the other side does not speak this protocol.
var errHandshake = errors.New("the other side is no node of this version")

// header is what a node tells about a connection that it forwards.
type header struct {
	cluster, node, service, client string
}

func (h *header) texts() [4]*string { return [4]*string{&h.cluster, &h.node, &h.service, &h.client} }

func (h *header) encode() ([]byte, error) {
	var b []byte
	for _, t := range h.texts() {
		if len(*t) > maxText {
			return nil, fmt.Errorf("cannot forward a connection: %q has %d bytes, at most %d", *t, len(*t), maxText)
		}
		b = append(append(b, byte(len(*t))), *t...)
	}
	return b, nil
}

func decodeHeader(b []byte) (h header, err error) {
	for _, t := range h.texts() {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return header{}, errHandshake
		}
		n := 1 + int(b[0])
		*t, b = string(b[1:n]), b[n:]
	}
	if len(b) > 0 {
		return header{}, errHandshake
	}
	return h, nil
}

// proof is what both sides of a handshake sign.
type proof struct {
	secret                  []byte
	dialler, server, header []byte
}

func (p *proof) mac(label string) []byte {
	m := hmac.New(sha256.New, p.secret)
	for _, part := range [][]byte{[]byte(label), p.dialler, p.server, p.header} { // all but the last have one length each
		m.Write(part)
	}
	return m.Sum(nil)
}

// dial makes the handshake of the side that connects.
func dial(c io.ReadWriter, secret []byte, h *header) error {
	enc, err := h.encode()
	if err != nil {
		return err
	}
	p := proof{secret: secret, dialler: nonce(), header: enc}
	hello := append([]byte(magic), p.dialler...)
	hello = append(binary.BigEndian.AppendUint16(hello, uint16(len(enc))), enc...)
	if _, err = c.Write(hello); err != nil {
		return err
	}
	var answer [nonceBytes + sha256.Size]byte
	if _, err = io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	p.server = answer[:nonceBytes]
	if !hmac.Equal(answer[nonceBytes:], p.mac(labelServer)) {
		return WrongSecret
	}
	if _, err = c.Write(p.mac(labelClient)); err != nil {
		return err
	}
	var status [1]byte
	if _, err = io.ReadFull(c, status[:]); err != nil {
		return err
	}
	if r := Refusal(status[0]); r != accepted {
		return r
	}
	return nil
}

// greet makes the handshake of the side that accepts, up to the status. A Refusal is to be sent.
func greet(c io.ReadWriter, secret []byte, cluster string) (header, error) {
	var hello [len(magic) + nonceBytes + 2]byte
	if _, err := io.ReadFull(c, hello[:]); err != nil {
		return header{}, err
	}
	n := binary.BigEndian.Uint16(hello[len(magic)+nonceBytes:])
	if string(hello[:len(magic)]) != magic || n > maxHeader {
		return header{}, errHandshake
	}
	p := proof{secret: secret, dialler: hello[len(magic) : len(magic)+nonceBytes], server: nonce(), header: make([]byte, n)}
	if _, err := io.ReadFull(c, p.header); err != nil {
		return header{}, err
	}
	h, err := decodeHeader(p.header)
	if err != nil {
		return header{}, err
	}
	if _, err := c.Write(append(p.server[:nonceBytes:nonceBytes], p.mac(labelServer)...)); err != nil {
		return header{}, err
	}
	var mac [sha256.Size]byte
	if _, err := io.ReadFull(c, mac[:]); err != nil {
		return header{}, err
	}
	if !hmac.Equal(mac[:], p.mac(labelClient)) || h.cluster != cluster {
		return header{}, WrongSecret
	}
	return h, nil
}

func nonce() []byte {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // it never fails
	return b
}
