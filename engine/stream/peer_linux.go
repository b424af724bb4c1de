package stream

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peerAllowed lets everyone in but the peers of a unix socket that run as neither this user nor root (kernel-ipc D41).
func peerAllowed(nc net.Conn) error {
	uc, ok := nc.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return fmt.Errorf("cannot tell the unix peer's user: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return fmt.Errorf("cannot tell the unix peer's user: %w", err)
	}
	if !uidAllowed(cred.Uid, uint32(os.Geteuid())) {
		return fmt.Errorf("cannot serve unix peer: uid %d, pid %d is neither this user nor root", cred.Uid, cred.Pid)
	}
	return nil
}

func uidAllowed(peer, own uint32) bool { return peer == own || peer == 0 }
