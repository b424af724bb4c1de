package mpack

// Usage are the five counters every reply about a process shows.
type Usage [5]int64

// Process is the PCB of kernel-ipc §4.0 as a reply shows it. Its slices are only read.
type Process struct {
	PID, RequestID, UserID, SessionID []byte
	State, Priority                   string
	Usage                             Usage
	CurrentStage                      string
}

// AppendProcess appends the eight-key PCB map.
func AppendProcess(dst []byte, p *Process) []byte {
	dst = AppendStr(append(dst, "\x88\xa3pid"...), p.PID)
	dst = AppendStr(append(dst, "\xaarequest_id"...), p.RequestID)
	dst = AppendStr(append(dst, "\xa7user_id"...), p.UserID)
	dst = AppendStr(append(dst, "\xaasession_id"...), p.SessionID)
	dst = AppendStr(append(dst, "\xa5state"...), p.State)
	dst = AppendStr(append(dst, "\xa8priority"...), p.Priority)
	dst = AppendUsage(append(dst, "\xa5usage"...), &p.Usage)
	return AppendStr(append(dst, "\xadcurrent_stage"...), p.CurrentStage)
}

// AppendUsage appends the map of the five counters: the reply of RecordUsage (kernel-ipc §4.8).
func AppendUsage(dst []byte, u *Usage) []byte {
	return appendCounters(append(dst, 0x85), u)
}

func appendCounters(dst []byte, u *Usage) []byte {
	dst = AppendInt(append(dst, "\xa9llm_calls"...), u[0])
	dst = AppendInt(append(dst, "\xaatool_calls"...), u[1])
	dst = AppendInt(append(dst, "\xaaagent_hops"...), u[2])
	dst = AppendInt(append(dst, "\xa9tokens_in"...), u[3])
	return AppendInt(append(dst, "\xaatokens_out"...), u[4])
}

// AppendQuotaCheck appends the reply of CheckQuota (kernel-ipc §4.7); no reason within bounds.
func AppendQuotaCheck(dst []byte, within bool, reason []byte, u *Usage) []byte {
	dst = AppendBool(append(dst, "\x87\xadwithin_bounds"...), within)
	dst = AppendStr(append(dst, "\xafexceeded_reason"...), reason)
	return appendCounters(dst, u)
}

// AppendQuota appends a quota as a map of names to values, in the order given (kernel-ipc §4.0).
func AppendQuota(dst []byte, names []string, values []int32) []byte {
	dst = AppendMap(dst, len(names))
	for i, name := range names {
		dst = AppendInt(AppendStr(dst, name), int64(values[i]))
	}
	return dst
}
