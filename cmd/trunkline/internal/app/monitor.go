package app

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

// loopsOf returns the listener with event loops whose connections have names that begin with name,
// nil where there is none.
func (s *server) loopsOf(name string) *listener {
	for _, l := range s.listeners() {
		if l.loops != nil && l.name == name {
			return l
		}
	}
	return nil
}

// monitor begins to observe a connection for /monitor.
func (s *server) monitor(conn string, payload int) (ops.Monitor, error) {
	if payload > 0 && !s.cfg.Load().Admin.MonitorPayloads {
		return nil, &ops.Refusal{Status: http.StatusForbidden, Text: "cannot show payloads: admin.monitor_payloads is false",
			Hint: "everyone who reaches the admin address could read them; set admin.monitor_payloads=true to allow it"}
	}
	name, number, _ := strings.Cut(conn, "-")
	if standby := s.options.cluster.Standing().Standby(); standby != "" && s.router == nil &&
		name != "exacta" { // projects stay on their node
		return nil, &ops.Refusal{
			Status: http.StatusServiceUnavailable,
			Text:   fmt.Sprintf("cannot monitor connection %q here: %s", conn, standby),
			Hint:   "clients of a standby are connections of the owner: ask the admin address of that node",
		}
	}
	id, err := strconv.ParseUint(number, 10, 64)
	of := s.loopsOf(name)
	if of == nil || err != nil {
		return nil, &ops.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("cannot monitor connection %q: want one of ipc, toolhost, threads or exacta, such as ipc-12", conn),
			Hint: "'trunkline connections' lists them; those over HTTP cannot be monitored"}
	}
	m, err := of.form.Observe(&of.taps, id, payload)
	if err != nil {
		return nil, monitorRefusal(conn, err)
	}
	return m, nil
}

// monitorRefusal gives an error of Observe its status.
func monitorRefusal(conn string, err error) error {
	r := &ops.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("cannot monitor connection %s: %v", conn, err), Hint: "'trunkline connections' lists those that are open"}
	switch {
	case errors.Is(err, connection.ErrTapped):
		r.Status, r.Hint = http.StatusConflict, "one reader at a time; end the other one first"
	case errors.Is(err, connection.ErrTaps):
		r.Status, r.Hint = http.StatusTooManyRequests, "end one of the others first"
	}
	return r
}

// overview returns what a look at the whole server shows, with these latencies. It takes the locks
// of the tables it counts, one at a time.
func (s *server) overview(latencies []obs.Latency, now time.Time) obs.Overview {
	reasons := s.ready.Reasons()
	o := obs.Overview{
		At: now.UTC(), Version: s.version, UptimeSeconds: now.Sub(s.started).Seconds(),
		Ready: len(reasons) == 0, Reasons: reasons,
		Processes: map[string]int64{}, Connections: map[string]int64{}, Latencies: append([]obs.Latency{}, latencies...),
		Cluster: s.options.cluster.Standing(),
	}
	s.addService(&o)
	s.addConnections(&o)
	for _, r := range s.replicas() {
		store := r.kernel.store.view(now)
		o.StoreMode, o.Refusing = store.Mode, o.Refusing || len(store.Warnings) > 0
		if j := store.Journal; j != nil {
			o.LagRecords += j.Appended - min(j.Durable, j.Appended)
			o.QueueBytes += j.QueueBytes
		}
	}
	return o
}

// addService adds what the kernel endpoint holds, once its stores were read.
func (s *server) addService(o *obs.Overview) {
	for _, r := range s.replicas() {
		st := r.stats()
		if st == nil {
			continue
		}
		for state, n := range st.Counts.ByState {
			o.Processes[kernel.State(state).String()] += n
		}
		o.QueueDepth += st.Counts.QueueDepth
		o.Sessions += st.Orch.Sessions
		o.EventsPublished += st.Bus.EventsPublished
		o.EventsDropped += st.Bus.DroppedEvents
		o.Subscribers += st.Bus.ActiveSubscribers
	}
}

// addConnections adds the open connections of all protocols that are served, and their bytes.
func (s *server) addConnections(o *obs.Overview) {
	add := func(protocol string, open, in, out int64) {
		o.Connections[protocol] += open
		o.BytesIn += in
		o.BytesOut += out
	}
	for _, l := range s.listeners() {
		open, in, out := l.totals()
		switch {
		case !l.legs:
			add(l.protocol, open, in, out)
		case l.protocol == protocolIPC: // each client would count once for each partition
			add(l.protocol, 0, in, out)
		}
	}
	if s.router != nil {
		o.Connections[protocolIPC] = s.router.Stats().Clients
	}
}
