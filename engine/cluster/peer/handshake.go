package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Lengths of the handshake, in bytes.
const (
	magic        = "TLKP"
	versionBytes = 1
	lenBytes     = 2
	maxText      = 255
	partBytes    = 4
	maxHeader    = 4*(1+maxText) + partBytes
)

// Versions of the header. A node of a former version speaks the first one alone.
const (
	ofFirst      = 1 // the partition is 0
	ofPartitions = 2
	ofDates      = 3 // as 2, of any partition; the connection is dated
)

// Refusal is why a node does not take a connection.
type Refusal uint8

const (
	accepted Refusal = iota
	// WrongCluster: the nodes are of different clusters.
	WrongCluster
	// NotOwner: the node does not own the service, or not any more. The caller asks for the owner
	// again.
	NotOwner
	// Full: the node has as many connections as it takes.
	Full
)

// Error implements error.
func (r Refusal) Error() string {
	switch r {
	case WrongCluster:
		return "the other node is of another cluster"
	case NotOwner:
		return "the other node does not own the service"
	case Full:
		return "the other node has no room for another connection"
	}
	return fmt.Sprintf("the other node refuses with status %d", uint8(r))
}

// errHandshake means that the other side does not speak this protocol.
var errHandshake = errors.New("the other side is no node of this version")

// header describes a connection that is forwarded.
type header struct {
	cluster, node, service, client string
	partition                      uint32
	dated                          bool
}

// version is the first that can describe h.
func (h *header) version() byte {
	switch {
	case h.dated:
		return ofDates
	case h.partition == 0:
		return ofFirst
	}
	return ofPartitions
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
	if h.version() != ofFirst {
		b = binary.BigEndian.AppendUint32(b, h.partition)
	}
	return b, nil
}

func decodeHeader(version byte, b []byte) (h header, err error) {
	for _, t := range h.texts() {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return header{}, errHandshake
		}
		n := 1 + int(b[0])
		*t, b = string(b[1:n]), b[n:]
	}
	h.dated = version == ofDates
	if version != ofFirst && len(b) == partBytes {
		h.partition, b = binary.BigEndian.Uint32(b), nil
	} else if h.dated {
		return header{}, errHandshake
	}
	if len(b) > 0 || h.version() != version {
		return header{}, errHandshake
	}
	return h, nil
}

// dial makes the handshake of the side that connects.
func dial(c io.ReadWriter, h *header) error {
	enc, err := h.encode()
	if err != nil {
		return err
	}
	hello := binary.BigEndian.AppendUint16(append([]byte(magic), h.version()), uint16(len(enc)))
	if _, err = c.Write(append(hello, enc...)); err != nil {
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
func greet(c io.Reader, cluster string) (header, error) {
	var hello [len(magic) + versionBytes + lenBytes]byte
	if _, err := io.ReadFull(c, hello[:]); err != nil {
		return header{}, err
	}
	n := binary.BigEndian.Uint16(hello[len(magic)+versionBytes:])
	if string(hello[:len(magic)]) != magic || n > maxHeader {
		return header{}, errHandshake
	}
	enc := make([]byte, n)
	if _, err := io.ReadFull(c, enc); err != nil {
		return header{}, err
	}
	h, err := decodeHeader(hello[len(magic)], enc)
	if err == nil && h.cluster != cluster {
		err = WrongCluster
	}
	return h, err
}
