package ipc

import (
	"slices"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
)

// Durability is which of a method's replies wait for the log (the durability column of the method
// table).
type Durability uint8

const (
	// None: the method changes nothing that could be kept.
	None Durability = iota
	// Lazy: its change is logged in order; the reply does not wait for it, unless the method reads.
	Lazy
	// Durable: the reply leaves after its change is safe.
	Durable
)

// method is a row of the method table, which is generated from methods.txt. Routing, counting and
// listing come from it.
type method struct {
	service, name string
	handle        func(*turn) wire.Code
	fields        []string      // the keys of the body in validation order; a handler finds the value of each at the same index of turn.fields
	want          []mpack.Field // fields, and idempotency_key behind them in a row that changes something
	durability    Durability
	stream        bool // opens a stream: it has no RESPONSE
	whole         bool // the handler reads the body itself, at turn.req.Body
	hidden        int  // how many of the last fields only nodes of a cluster send
	to            Destination
	key           string // the field whose partition serves it, with ToKey
	several       bool   // a request may make several changes, which a crash keeps together or not at all
	reads         bool   // the reply waits until all that it shows is durable
	doc           string
	need          kernel.Need // what is fetched ahead beside the row, if the first field is a pid
	index         int         // of the row in the table
	keyed         bool        // the first field is a pid: its row is fetched ahead
}

// maxFields is the longest list of fields a row has, idempotency_key included.
const maxFields = 10

// quotaNames are the keys of a quota, in validation order (kernel-ipc §4.0).
var quotaNames = func() []string {
	names := make([]string, kernel.NumQuotaFields)
	for i := range names {
		names[i] = kernel.QuotaField(i).String()
	}
	return names
}()

var quotaFields = mpack.Fields(quotaNames...)

func index(table []method) []method {
	for i := range table {
		table[i].index = i
		table[i].keyed = len(table[i].fields) > 0 && table[i].fields[0] == "pid"
		names := table[i].fields
		if table[i].durability != None {
			names = append(slices.Clip(names), IdempotencyKey)
		}
		table[i].want = mpack.Fields(names...)
	}
	return table
}

// routes finds a method's row by its names as they stand in the request: an open-addressed table
// that is never written after it was made, sparse enough that a look-up is one comparison of each
// name.
type routes struct {
	rows     [512]*method
	services []string
}

func newRoutes(table []method) *routes {
	r := &routes{}
	for i := range table {
		m := &table[i]
		at := routeHash(m.service, m.name)
		for r.rows[at] != nil {
			at = (at + 1) % len(r.rows)
		}
		r.rows[at] = m
		if !slices.Contains(r.services, m.service) {
			r.services = append(r.services, m.service)
		}
	}
	return r
}

// routeHash separates method names by their length and three of their letters; both names are not
// empty.
func routeHash[T ~string | ~[]byte](service, name T) int {
	n := len(name)
	h := uint(n) + uint(name[0])*7 + uint(name[n-1])*31 + uint(name[n/2])*131 + uint(service[0])*257
	return int(h % uint(len(routes{}.rows)))
}

// find returns the row of a method, nil if there is none. It does not allocate.
func (r *routes) find(service, name []byte) *method {
	if len(service) == 0 || len(name) == 0 {
		return nil
	}
	for at := routeHash(service, name); r.rows[at] != nil; at = (at + 1) % len(r.rows) {
		if m := r.rows[at]; m.name == string(name) && m.service == string(service) {
			return m
		}
	}
	return nil
}

// has reports whether any method belongs to service.
func (r *routes) has(service []byte) bool {
	return slices.ContainsFunc(r.services, func(s string) bool { return s == string(service) })
}

// MethodInfo describes one method of the endpoint, for listings and documentation.
type MethodInfo struct {
	Service, Name string
	Doc           string   // one sentence
	Fields        []string // keys of the body, in validation order
	Stream        bool     // opens a stream instead of being answered by a RESPONSE
	Durability    Durability
	To            Destination
}

// Methods lists the methods the endpoint serves, in the order of the method table.
func Methods() []MethodInfo {
	infos := make([]MethodInfo, 0, len(methods))
	for i := range methods {
		m := &methods[i]
		infos = append(infos, MethodInfo{m.service, m.name, m.doc, slices.Clone(m.fields[:len(m.fields)-m.hidden]), m.stream, m.durability, m.to})
	}
	return infos
}
