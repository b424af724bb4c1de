package stream

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// PeerAllowed lets everyone in but the peers of a unix socket that run as neither this user nor
// root (kernel-ipc D41).
func PeerAllowed(nc net.Conn) error {
	uc, ok := nc.(*net.UnixConn)
	if !ok {
		return nil
	}
	cred, err := credentials(uc)
	if err != nil {
		return fmt.Errorf("cannot tell the unix peer's user: %w", err)
	}
	if !uidAllowed(cred.Uid, uint32(os.Geteuid())) {
		return fmt.Errorf("cannot serve unix peer: uid %d, pid %d is neither this user nor root", cred.Uid, cred.Pid)
	}
	return nil
}

func credentials(uc *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := uc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	return cred, err
}

// unixPeer names the peer of a unix socket, "uid:" and the number of its user.
func unixPeer(uc *net.UnixConn) (name string, ok bool) {
	cred, err := credentials(uc)
	if err != nil {
		return "", false
	}
	return UnixPeer + strconv.FormatUint(uint64(cred.Uid), 10), true
}

func uidAllowed(peer, own uint32) bool { return peer == own || peer == 0 }
