package webhook

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// special are networks within global unicast addresses that are not public (RFC 6890): shared and
// reserved ones, protocol assignments, documentation, benchmarks, 6to4.
const special = "0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 " +
	"203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20"

func within(a netip.Addr, network string) bool { return netip.MustParsePrefix(network).Contains(a) }

// public reports whether an address is one of the public network.
func public(a netip.Addr) bool {
	if a = a.Unmap(); within(a, "64:ff9b::/96") { // NAT64
		last := a.As16()
		a = netip.AddrFrom4([4]byte(last[12:]))
	}
	for _, network := range strings.Fields(special) {
		if within(a, network) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && (a.Is4() || within(a, "2000::/3"))
}

// refusePrivate is net.Dialer.Control. It gets the address that is dialled: what a name resolves to
// at another time does not matter.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	if a, err := netip.ParseAddrPort(address); err != nil || !public(a.Addr()) {
		return fmt.Errorf("cannot connect to %s: it is not public, and allow_private does not name the host", address)
	}
	return nil
}
