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

// addConnections adds the open connections of all protocols that are served, and their bytes, those
// of HTTP aside.
func (s *server) addConnections(o *obs.Overview) {
	add := func(protocol string, st stream.Snapshot) {
		o.Connections[protocol] += st.Open
		o.BytesIn += st.BytesIn
		o.BytesOut += st.BytesOut
	}
	add("ipc", s.kernel.srv.Stats())
	if s.web != nil {
		o.Connections["http"] = s.web.srv.Stats().Connections
	}
	if s.tools != nil {
		add("toolhost", s.tools.loops.Stats())
	}
	if s.threads != nil {
		add("threads", s.threads.loops.Stats())
		o.Connections["threads"] += s.threads.web.Open()
	}
	if e := s.exacta; e != nil {
		if e.loops != nil {
			add("exacta", e.loops.Stats())
		}
		if e.ws != nil {
			add("exacta", e.ws.Stats())
		}
		if e.viewer != nil {
			add("exacta", e.viewer.Stats())
		}
	}
}
