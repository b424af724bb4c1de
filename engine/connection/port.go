package connection

import (
	"cmp"
	"strconv"
	"strings"
	"sync/atomic"
)

// Listener is what the connections of one listener have in common.
type Listener struct {
	// Protocol is that of its sessions. Name is what the names of its connections begin with, the
	// same for all listeners whose connections are numbered together.
	Protocol, Name string
	// Addr is where it listens, empty for connections that were not accepted.
	Addr string
}

// Number returns the number of the connection that has this name; ok is false where it is none of
// this listener.
func (l *Listener) Number(name string) (id uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, l.prefix())
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, ok && err == nil
}

// prefix is what the names of its connections have before their numbers.
func (l *Listener) prefix() string { return cmp.Or(l.Name, "conn") + "-" }

// Owner moves a connection's bytes. Wake is called from any goroutine, at most once until the owner
// calls Port.Rearm, and must be quick: it may run under locks of the caller.
type Owner interface {
	Wake(p *Port)
}

// Port names one connection to the rest of the process. It outlives a change of owner, and its
// methods may be called from any goroutine, also after the connection is gone.
type Port struct {
	id     uint64
	remote string
	from   *Listener
	owner  atomic.Pointer[Owner]
	armed  atomic.Bool

	// Only the owner and the session's methods use these.
	loop  *Loop // nil where the owner has none
	own   *Loop // of a port without a loop that has waited
	mark  *Watermark
	until uint64 // the index of mark that the session waits for
	slot  int    // one more than its index in loop.waiting; 0: it is not there
}

// NewPort returns the port of a connection without an owner; id is unique in the process.
func NewPort(id uint64, remote string) *Port {
	return &Port{id: id, remote: remote}
}

// ID returns the connection's number, unique for the life of the process.
func (p *Port) ID() uint64 { return p.id }

// Remote returns the peer's address as text, for logs.
func (p *Port) Remote() string { return p.remote }

// From gives the port of a new connection its listener, and returns the port.
func (p *Port) From(l *Listener) *Port {
	p.from = l
	return p
}

// Listener returns what From was given; the zero Listener otherwise.
func (p *Port) Listener() Listener {
	if p.from == nil {
		return Listener{}
	}
	return *p.from
}

// Name returns what people know the connection by, such as "ipc-12".
func (p *Port) Name() string {
	l := p.Listener()
	return l.prefix() + strconv.FormatUint(p.id, 10)
}

// Wake asks the connection's owner to call the session's Pump soon. Calls made before the owner has
// come round are one call. It does not allocate and takes no lock of its own.
func (p *Port) Wake() {
	if p.armed.Swap(true) {
		return
	}
	if o := p.owner.Load(); o != nil {
		(*o).Wake(p)
	}
}

// Rearm is called right before a Pump: a later Wake reaches the owner again.
func (p *Port) Rearm() { p.armed.Store(false) }

// SetOwner makes o the connection's owner; nil when the connection is gone. A wake-up that went to
// the former owner is repeated to o, so none is lost across the change. The goroutine that served
// the session until now calls it.
func (p *Port) SetOwner(o Owner) {
	p.leaveList()
	p.loop = nil
	if l, ok := o.(interface{ Loop() *Loop }); ok {
		p.loop = l.Loop()
	}
	if o == nil {
		p.owner.Store(nil)
		return
	}
	p.owner.Store(&o)
	if p.armed.Load() {
		o.Wake(p)
	}
}

// OwnInput is how many bytes of input each connection may hold beside a Budget: a line or frame of
// moderate length never waits for what other connections hold.
const OwnInput = 128 << 10

// Budget bounds the input that all connections of a server hold and no session has taken, without
// OwnInput bytes of each. It counts the memory of the buffers, not the bytes in them. Any goroutine
// may call its methods, which do not allocate. A nil Budget bounds nothing.
type Budget struct {
	max           int64
	used, refused atomic.Int64
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int) *Budget { return &Budget{max: int64(max)} }

// Charge is the part of a Budget that one connection has. The zero Charge is none.
type Charge struct{ n int64 }

// Fit makes c the charge of a connection whose input buffer has size bytes. It reports false and
// changes nothing where the charge would grow and the budget has no room. Shrinking always fits.
func (b *Budget) Fit(c *Charge, size int) bool {
	if b == nil {
		return true
	}
	want := int64(max(size-OwnInput, 0))
	grow := want - c.n
	if grow == 0 {
		return true
	}
	if used := b.used.Add(grow); grow > 0 && used > b.max {
		b.used.Add(-grow)
		return false
	}
	c.n = want
	return true
}

// CountRefused counts a connection that was closed because it did not fit.
func (b *Budget) CountRefused() { b.refused.Add(1) }

// Used returns how many bytes are charged.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused returns how many connections were closed because they did not fit.
func (b *Budget) Refused() int64 { return b.refused.Load() }
