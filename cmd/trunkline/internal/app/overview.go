package app

import (
	"time"

	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
)

// overview returns what a look at the whole server shows, with these latencies. It takes the locks
// of the tables it counts, one at a time.
func (s *server) overview(latencies []obs.Latency, now time.Time) obs.Overview {
	reasons := s.ready.Reasons()
	o := obs.Overview{
		At: now.UTC(), Version: s.version, UptimeSeconds: now.Sub(s.started).Seconds(),
		Ready: len(reasons) == 0, Reasons: reasons,
		Processes: map[string]int64{}, Connections: map[string]int64{}, Latencies: append([]obs.Latency{}, latencies...),
		Cluster: s.standing(),
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
	lines := func(protocol string, st stream.Snapshot) { add(protocol, st.Open, st.BytesIn, st.BytesOut) }
	web := func(protocol string, of interface{ Totals() (open, in, out int64) }) {
		open, in, out := of.Totals()
		add(protocol, open, in, out)
	}
	for _, r := range s.replicas() {
		lines(protocolIPC, r.kernel.srv.Stats())
	}
	if s.router != nil { // else each client would count once for each partition
		o.Connections[protocolIPC] = s.router.Stats().Clients
	}
	if s.web != nil {
		web("http", s.web.srv)
	}
	first := s.first()
	if first.tools != nil {
		lines("toolhost", first.tools.loops.Stats())
	}
	switch {
	case s.threadRouter != nil: // as those of the kernel endpoint
		web(protocolThreads, s.threadRouter.web)
		web(protocolThreads, s.threadRouter.lines)
	case first.threads != nil:
		lines(protocolThreads, first.threads.loops.Stats())
		web(protocolThreads, first.threads.web)
	}
	if e := s.exacta; e != nil {
		if e.loops != nil {
			lines("exacta", e.loops.Stats())
		}
		if e.ws != nil {
			lines("exacta", e.ws.Stats())
		}
		if e.viewer != nil {
			lines("exacta", e.viewer.Stats())
		}
	}
}
