package route

import (
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/handlers/ipc/message"
)

// processCounts is GetProcessCounts: the sums of all partitions.
func (s *session) processCounts([]byte) bool {
	o := s.begin()
	o.askAll([]byte(emptyMap), func() {
		var sum message.Counts
		for i := range o.parts {
			if o.parts[i].typ == frame.Error {
				o.relay(i)
				return
			}
			var c message.Counts
			if _, err := c.UnmarshalMsg(o.body(i)); err != nil {
				s.fail(i, err)
				return
			}
			addStates(&sum.CountsByState, &c.CountsByState)
			sum.Total += c.Total
			sum.QueueDepth += c.QueueDepth
		}
		body, _ := sum.MarshalMsg(nil) // it has no value that cannot be encoded
		o.answer(body)
	})
	return true
}

func addStates(sum, c *message.StateCounts) {
	sum.New += c.New
	sum.Ready += c.Ready
	sum.Running += c.Running
	sum.Waiting += c.Waiting
	sum.Blocked += c.Blocked
	sum.Terminated += c.Terminated
	sum.Zombie += c.Zombie
}

// systemStatus is GetSystemStatus: the sums of all partitions.
func (s *session) systemStatus(whole []byte) bool {
	digest := member(s.req.Body, "digest")
	if digest.Kind != mpack.Absent && digest.Kind != mpack.Nil && digest.Kind != mpack.Bool {
		return s.pass(0, whole, true)
	}
	body := []byte(emptyMap)
	if digest.Kind == mpack.Bool && digest.Int != 0 {
		body = mpack.AppendBool(mpack.AppendStr(mpack.AppendMap(nil, 1), "digest"), true)
	}
	o := s.begin()
	o.askAll(body, func() {
		var sum message.Status
		for i := range o.parts {
			if o.parts[i].typ == frame.Error {
				o.relay(i)
				return
			}
			var st message.Status
			if _, err := st.UnmarshalMsg(o.body(i)); err != nil {
				s.fail(i, err)
				return
			}
			addStatus(&sum, &st, i == 0)
		}
		body, _ := sum.MarshalMsg(nil) // it has no value that cannot be encoded
		o.answer(body)
	})
	return true
}

// addStatus adds what a partition reports. A subscriber is one that all partitions have: it has a
// stream at each.
func addStatus(sum, st *message.Status, first bool) {
	sum.Processes.Total += st.Processes.Total
	addStates(&sum.Processes.ByState, &st.Processes.ByState)
	sum.Services.Healthy += st.Services.Healthy
	sum.Services.Degraded += st.Services.Degraded
	sum.Services.Unhealthy += st.Services.Unhealthy
	sum.Orchestration.ActiveSessions += st.Orchestration.ActiveSessions
	b := &sum.Commbus
	if first || st.Commbus.ActiveSubscribers < b.ActiveSubscribers {
		b.ActiveSubscribers = st.Commbus.ActiveSubscribers
	}
	b.EventsPublished += st.Commbus.EventsPublished
	b.CommandsSent += st.Commbus.CommandsSent
	b.QueriesExecuted += st.Commbus.QueriesExecuted
	if st.Digest == nil {
		return
	}
	if sum.Digest == nil {
		sum.Digest = &message.Digest{}
	}
	d := sum.Digest
	d.Kernel = append(d.Kernel, st.Digest.Kernel...)
	d.Orchestration = append(d.Orchestration, st.Digest.Orchestration...)
	d.Index += st.Digest.Index
	d.Through += st.Digest.Through // equal sums are equal parts: none is below its Index
}
