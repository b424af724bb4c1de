package dispatch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// errUnasked is what a connection ends with on which there is a line before the request that it would be taken to answer.
var errUnasked = errors.New("cannot use the connection: the server wrote what nobody asked for")

// exchange writes a line and returns the next that comes.
func (c *Conn) exchange(line []byte) (reply []byte, err error) {
	if err = c.quiet(); err != nil {
		return nil, err
	}
	if _, err = c.nc.Write(append(bytes.Clone(line), '\n')); err != nil {
		return nil, err
	}
	for {
		part, err := c.in.ReadSlice('\n')
		reply = append(reply, part...)
		switch {
		case len(reply) > MaxReply:
			return nil, fmt.Errorf("cannot read the reply: longer than %d bytes", MaxReply)
		case err == nil:
			return reply[:len(reply)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// quiet looks, without waiting, whether the server wrote something already, or is gone: then nothing is sent, and nothing was run.
func (c *Conn) quiet() error {
	if c.in.Buffered() > 0 {
		return errUnasked
	}
	socket, ok := c.nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	if rawErr := raw.Control(func(fd uintptr) { err = peek(int(fd)) }); rawErr != nil {
		return rawErr
	}
	return err
}

// peek tells what a socket has to read: nil if nothing yet.
func peek(fd int) error {
	var next [1]byte
	for {
		n, _, err := unix.Recvfrom(fd, next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return nil
		case err != nil:
			return fmt.Errorf("cannot use the connection: %w", err)
		case n == 0:
			return fmt.Errorf("cannot use the connection: %w", io.EOF)
		default:
			return errUnasked
		}
	}
}
