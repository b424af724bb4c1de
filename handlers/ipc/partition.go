package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/engine/cluster/placement"
)

// Destination is which partitions of a cluster serve a method (the to lines of the method table).
type Destination uint8

const (
	// ToFirst: partition 0, as for whatever is no request to a method.
	ToFirst Destination = iota
	// ToKey: the partition of a field of the body.
	ToKey
	// ToEnvelope: the partition of the identifier of the envelope in the body.
	ToEnvelope
	// ToAny: whichever partition is next.
	ToAny
	// ToSeveral: the sender has work of its own with the method.
	ToSeveral
)

// Route is how the requests to a method find their partition.
type Route struct {
	Method string
	To     Destination
	// Key is the field that decides, alone, and Kind what it names. They are set with ToKey only.
	Key  []mpack.Field
	Kind placement.Kind
}

// keyKind returns what a field of a to line names.
func keyKind(field string) placement.Kind {
	switch field {
	case "user_id":
		return placement.User
	case "event_type", "command_type":
		return placement.Topic
	case "query_id":
		return placement.Query
	case "pid", "process_id":
		return placement.Process
	}
	panic("ipc: what " + field + " names is of no kind of key")
}

// Routing finds the routes of methods. It is never written after it was made.
type Routing struct {
	rows   *routes
	routes []Route // by the rows of the method table
}

// NewRouting returns the routes of all methods.
func NewRouting() *Routing {
	r := &Routing{rows: newRoutes(methods), routes: make([]Route, len(methods))}
	for i := range methods {
		m := &methods[i]
		r.routes[i] = Route{Method: m.name, To: m.to}
		if m.to == ToKey {
			r.routes[i].Key, r.routes[i].Kind = mpack.Fields(m.key), keyKind(m.key)
		}
	}
	return r
}

// Find returns the route of a method, nil if there is none of these names. It does not allocate.
func (r *Routing) Find(service, method []byte) *Route {
	if m := r.rows.find(service, method); m != nil {
		return &r.routes[m.index]
	}
	return nil
}
