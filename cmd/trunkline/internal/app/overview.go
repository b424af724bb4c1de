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
	store := s.kernel.store.view(now)
	o.StoreMode, o.Refusing = store.Mode, len(store.Warnings) > 0
	if j := store.Journal; j != nil {
		o.LagRecords, o.QueueBytes = j.Appended-min(j.Durable, j.Appended), j.QueueBytes
	}
	return o
}

// addService adds what the kernel endpoint holds, once the store was read.
func (s *server) addService(o *obs.Overview) {
	if !s.kernel.whole.Load() {
		return
	}
	st := s.kernel.svc.Stats()
	for state, n := range st.Counts.ByState {
		o.Processes[kernel.State(state).String()] = n
	}
	o.QueueDepth, o.Sessions = st.Counts.QueueDepth, st.Orch.Sessions
	o.EventsPublished, o.EventsDropped, o.Subscribers = st.Bus.EventsPublished, st.Bus.DroppedEvents, st.Bus.ActiveSubscribers
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
	lines("ipc", s.kernel.srv.Stats())
	if s.web != nil {
		web("http", s.web.srv)
	}
	if s.tools != nil {
		lines("toolhost", s.tools.loops.Stats())
	}
	if s.threads != nil {
		lines("threads", s.threads.loops.Stats())
		web("threads", s.threads.web)
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
