package fuzz

import "fmt"

// listProcesses is kernel-ipc §4.10.
func listProcesses(k *call) object {
	m := k.model
	state := k.text("state")
	if state != "" {
		name, known := oneOf(states, state)
		if !known {
			k.invalid("Invalid process state: %s", state)
		}
		state = name
	}
	user, position := k.optionalID("user_id"), k.i64("cursor")
	limit := 0
	if n, ok := k.field("limit").(int64); ok && n < 1 {
		k.invalid("limit must be positive")
	} else if n := k.i64("limit"); n > 0 {
		limit = int(n)
	}
	if k.bad != nil {
		return nil
	}
	after, known := m.cursors[position]
	if !known && position != 0 {
		// No next_cursor of ours: whatever comes.
		k.out = append(k.out, expected{response, object{{"id", k.id}, {"ok", true}, {"body", anyOf{object{}}}}})
		return nil
	}
	rows, last := []any{}, 0
	for _, p := range m.procs {
		if p.created <= after || state != "" && p.state != state || user != "" && p.user != user {
			continue
		}
		if limit > 0 && len(rows) == limit {
			return object{{"processes", rows}, {"next_cursor", cursor{m, last}}}
		}
		rows, last = append(rows, m.pcb(p)), p.created
	}
	return object{{"processes", rows}}
}

// learnCursor notes which place the server's next_cursor stands for.
func (m *model) learnCursor(after int, got any) error {
	n, ok := got.(int64)
	if place, known := m.cursors[n]; !ok || n <= 0 || known && place != after {
		return fmt.Errorf("got the cursor %v for the place after creation %d, it was %d before", got, after, place)
	}
	m.cursors[n] = after
	return nil
}

// byState counts the processes.
func (m *model) byState() (counts object, total, queued int) {
	for _, s := range states {
		n := 0
		for _, p := range m.procs {
			if p.state == s {
				n++
			}
		}
		counts, total = append(counts, member{s, n}), total+n
	}
	for _, p := range m.procs {
		if p.state == "READY" && !p.leased {
			queued++
		}
	}
	return counts, total, queued
}

// getProcessCounts is kernel-ipc §4.11.
func getProcessCounts(k *call) object {
	counts, total, queued := k.model.byState()
	return object{{"counts_by_state", counts}, {"total", total}, {"queue_depth", queued}}
}

// getSystemStatus is kernel-ipc §4.14.
func getSystemStatus(k *call) object {
	m := k.model
	counts, total, _ := m.byState()
	subscribers := 0
	for _, c := range m.conns {
		for _, s := range c.streams {
			if s.kind == "Subscribe" && !s.ending {
				subscribers++
			}
		}
	}
	return object{
		{"processes", object{{"total", total}, {"by_state", counts}}},
		{"services", object{{"healthy", 0}, {"degraded", 0}, {"unhealthy", 0}}},
		{"orchestration", object{{"active_sessions", len(m.sessions)}}},
		{"commbus", object{{"events_published", m.published}, {"commands_sent", m.sent}, {"queries_executed", m.executed},
			{"active_subscribers", subscribers}}},
	}
}
