package app

import (
	"time"

	"trunkline/engine/kernel"
	"trunkline/engine/obs"
)

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
