package mpack

// appendStateCounts appends a map of state names to counts, zeros included.
func appendStateCounts(dst []byte, names []string, counts []int64) []byte {
	dst = AppendMap(dst, len(names))
	for i, name := range names {
		dst = AppendInt(AppendStr(dst, name), counts[i])
	}
	return dst
}

// AppendProcessCounts appends the reply of GetProcessCounts (kernel-ipc §4.11).
func AppendProcessCounts(dst []byte, names []string, counts []int64, total, queueDepth int64) []byte {
	dst = appendStateCounts(append(dst, "\x83\xafcounts_by_state"...), names, counts)
	dst = AppendInt(append(dst, "\xa5total"...), total)
	return AppendInt(append(dst, "\xabqueue_depth"...), queueDepth)
}

// Status is what GetSystemStatus reports beside the process counts (kernel-ipc §4.14).
type Status struct {
	ActiveSessions                                                    int64
	EventsPublished, CommandsSent, QueriesExecuted, ActiveSubscribers int64
}

// AppendStatus appends the reply of GetSystemStatus.
func AppendStatus(dst []byte, names []string, counts []int64, total int64, s *Status) []byte {
	dst = AppendInt(append(dst, "\x84\xa9processes\x82\xa5total"...), total)
	dst = appendStateCounts(append(dst, "\xa8by_state"...), names, counts)
	dst = append(dst, "\xa8services\x83\xa7healthy\x00\xa8degraded\x00\xa9unhealthy\x00"...)
	dst = AppendInt(append(dst, "\xadorchestration\x81\xafactive_sessions"...), s.ActiveSessions)
	dst = AppendInt(append(dst, "\xa7commbus\x84\xb0events_published"...), s.EventsPublished)
	dst = AppendInt(append(dst, "\xadcommands_sent"...), s.CommandsSent)
	dst = AppendInt(append(dst, "\xb0queries_executed"...), s.QueriesExecuted)
	return AppendInt(append(dst, "\xb2active_subscribers"...), s.ActiveSubscribers)
}
