package mpack

// AppendEvent appends the body of an event chunk (kernel-ipc §4.0) with payload, JSON text, as it
// is.
func AppendEvent[T ~string | ~[]byte](dst []byte, eventType T, payload []byte, timestampMS int64, source T) []byte {
	dst = AppendStr(append(dst, "\x84\xaaevent_type"...), eventType)
	dst = AppendStr(append(dst, "\xa7payload"...), payload)
	dst = AppendInt(append(dst, "\xactimestamp_ms"...), timestampMS)
	return AppendStr(append(dst, "\xa6source"...), source)
}

// AppendCommand appends the body of a command chunk (kernel-ipc §4.20), which differs from an event
// in its first key and in its order of keys.
func AppendCommand(dst []byte, commandType, payload, source []byte, timestampMS int64) []byte {
	dst = AppendStr(append(dst, "\x84\xaccommand_type"...), commandType)
	dst = AppendStr(append(dst, "\xa7payload"...), payload)
	dst = AppendStr(append(dst, "\xa6source"...), source)
	return AppendInt(append(dst, "\xactimestamp_ms"...), timestampMS)
}

// AppendQuery appends the body of a query chunk (kernel-ipc §4.20).
func AppendQuery(dst, queryID, queryType, payload, source []byte, timeoutMS int64) []byte {
	dst = AppendStr(append(dst, "\x85\xa8query_id"...), queryID)
	dst = AppendStr(append(dst, "\xaaquery_type"...), queryType)
	dst = AppendStr(append(dst, "\xa7payload"...), payload)
	dst = AppendStr(append(dst, "\xa6source"...), source)
	return AppendInt(append(dst, "\xaatimeout_ms"...), timeoutMS)
}
