package route

import (
	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/handlers/ipc/message"
)

// summand is the body of a reply that can be added to those of other partitions.
type summand[T any] interface {
	*T
	UnmarshalMsg(b []byte) (rest []byte, err error)
	MarshalMsg(b []byte) ([]byte, error)
}

// sum has all partitions answer the same request, which is little, and answers with the sum of
// their replies.
func sum[T any, P summand[T]](s *session, request []byte, add func(sum, one P, first bool)) bool {
	o := s.begin()
	o.next = func() {
		sum := P(new(T))
		for i := range o.parts {
			if o.parts[i].typ == frame.Error {
				o.relay(i)
				return
			}
			one := P(new(T))
			if _, err := one.UnmarshalMsg(o.body(i)); err != nil {
				s.fail(i, err)
				return
			}
			add(sum, one, i == 0)
		}
		body, _ := sum.MarshalMsg(nil) // it has no value that cannot be encoded
		o.answer(body)
	}
	for i := range o.parts {
		o.ask(i, request)
	}
	return true
}

// processCounts is GetProcessCounts.
func (s *session) processCounts([]byte) bool {
	return sum(s, []byte(emptyMap), func(sum, c *message.Counts, _ bool) {
		addStates(&sum.CountsByState, &c.CountsByState)
		sum.Total += c.Total
		sum.QueueDepth += c.QueueDepth
	})
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

// systemStatus is GetSystemStatus.
func (s *session) systemStatus(whole []byte) bool {
	digest := member(s.req.Body, "digest")
	if digest.Kind != mpack.Absent && digest.Kind != mpack.Nil && digest.Kind != mpack.Bool {
		return s.pass(0, whole, true)
	}
	body := []byte(emptyMap)
	if digest.Kind == mpack.Bool && digest.Int != 0 {
		body = mpack.AppendBool(mpack.AppendStr(mpack.AppendMap(nil, 1), "digest"), true)
	}
	return sum(s, body, addStatus)
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
