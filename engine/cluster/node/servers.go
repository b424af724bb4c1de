package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"
)

// askSubject reaches all servers from their system account.
const askSubject = "$SYS.REQ.SERVER.PING.VARZ"

// Bounds of asking servers.
const (
	maxServers = 1024
	// askQuiet: without an answer for so long, no further one is waited for.
	askQuiet = time.Second
)

// serverState is the answer of one server.
type serverState struct {
	Server server.ServerInfo `json:"server"`
	Data   struct {
		JetStream server.JetStreamVarz `json:"jetstream"`
	} `json:"data"`
}

// askServers asks all servers what they are, over a connection to their system account, and returns
// the answers in the order of their names. It waits until expect servers have answered, 0 for an
// unknown number, or none has for a while.
func askServers(ctx context.Context, system *nats.Conn, expect int) (answers []serverState, err error) {
	texts, err := gather(ctx, system, askSubject, nil, expect)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		var a serverState
		if err := json.Unmarshal(text, &a); err != nil {
			return nil, fmt.Errorf("cannot read the answer of a server: %w", err)
		}
		answers = append(answers, a)
	}
	slices.SortFunc(answers, func(a, b serverState) int { return strings.Compare(a.Server.Name, b.Server.Name) })
	return answers, nil
}

// gather asks all who listen to a subject. It waits until expect have answered, 0 for an unknown
// number, or none has for a while.
func gather(ctx context.Context, conn *nats.Conn, subject string, question []byte, expect int) (answers [][]byte, err error) {
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err = conn.PublishRequest(subject, inbox, question); err != nil {
		return nil, err
	}
	for len(answers) < maxServers && (expect == 0 || len(answers) < expect) {
		quiet, cancel := context.WithTimeout(ctx, askQuiet)
		msg, err := sub.NextMsgWithContext(quiet)
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			break
		}
		answers = append(answers, msg.Data)
	}
	return answers, nil
}

// members admits the routes of the nodes of the list, one process for each. The library would take
// any other node in as one more voter, for good: the others need a larger majority from then on,
// whether it runs or not. A second process with the id of a node would vote, and acknowledge, for
// the first one.
type members struct {
	cfg *Config
	log *rate.Limiter // of refusals
}

// refusalsEvery is how often a refusal is logged: a node that was refused tries again.
const refusalsEvery = 10 * time.Second

// Check implements server.Authentication. A node of a former version does not name itself.
func (m *members) Check(c server.ClientAuthentication) bool {
	node, start := c.GetOpts().Username, c.GetOpts().Name
	if node == "" {
		return true
	}
	why := "it is not of the list of routes"
	if i := slices.IndexFunc(m.cfg.Routes, func(r Route) bool { return r.Node == node }); i >= 0 {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		g, err := greet(ctx, m.cfg.Routes[i].Addr, m.cfg.TLS)
		if err != nil || g.ID == start {
			return true
		}
		why = "another process answers at the address of the node: two nodes with one id would vote twice"
	}
	if m.log.Allow() {
		m.cfg.Logger.Error("refusing a node", "node", node, "addr", c.RemoteAddress().String(), "err", why)
	}
	return false
}

// nodes lists the ids of the list.
func (cfg *Config) nodes() string {
	ids := make([]string, len(cfg.Routes))
	for i, r := range cfg.Routes {
		ids[i] = r.Node
	}
	slices.Sort(ids)
	return strings.Join(ids, ",")
}

// noClients is a listener without an address: no client ever connects. The server needs one all the
// same: without it (DontListen) it never opens its routes, does not end, and hands over no
// leadership before it stops.
type noClients struct {
	once   sync.Once
	closed chan struct{}
	taken  atomic.Bool
}

// Accept waits until Close.
func (l *noClients) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

// Close may be called more than once.
func (l *noClients) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the form that the server expects. The server asks for it when it begins to accept.
func (l *noClients) Addr() net.Addr {
	l.taken.Store(true)
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
}

// withoutClients gives s, a *server.Server that has not been started, the listener that it uses
// instead of opening one. unused takes it back, if the start ended before s began to accept: to
// stop, s would wait for the end of what has not begun. ok is false where the library has no such
// field: then s opens a port of the loopback interface, where only this process can log in.
func withoutClients(s any) (unused func(), ok bool) {
	f := reflect.ValueOf(s).Elem().FieldByName("listener")
	if !f.IsValid() || f.Type() != reflect.TypeFor[net.Listener]() {
		return func() {}, false
	}
	at, l := (*net.Listener)(unsafe.Pointer(f.UnsafeAddr())), &noClients{closed: make(chan struct{})}
	*at = l
	return func() {
		if !l.taken.Load() {
			*at = nil
		}
	}, true
}
