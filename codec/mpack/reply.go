package mpack

// AppendResponseHead appends a RESPONSE payload up to the body map (kernel-ipc §3.5).
func AppendResponseHead(dst, id []byte) []byte {
	dst = AppendStr(append(dst, "\x83\xa2id"...), id)
	return append(dst, "\xa2ok\xc3\xa4body"...)
}

// AppendChunkPrefix appends what the frames of a stream share, up to the body.
func AppendChunkPrefix(dst, id []byte) []byte {
	dst = AppendStr(append(dst, "\x82\xa2id"...), id)
	return append(dst, "\xa4body"...)
}

// AppendStreamEnd appends the payload of a STREAM_END.
func AppendStreamEnd(dst, id []byte) []byte {
	return AppendStr(append(dst, "\x81\xa2id"...), id)
}

// Extras are the further members of an error (kernel-ipc §3.5). The zero value has none.
type Extras struct {
	// Retryable is set on saturation, and where a partition has no owner.
	Retryable bool
	// QueueCapacity is kernel_queue_capacity, sent when positive.
	QueueCapacity int
	// MaxConnections is max_connections, sent when positive.
	MaxConnections int
	// RetryAfter is retry_after_seconds, sent when positive.
	RetryAfter float64
}

func (e *Extras) count() (n int) {
	for _, has := range [...]bool{e.Retryable, e.QueueCapacity > 0, e.MaxConnections > 0, e.RetryAfter > 0} {
		if has {
			n++
		}
	}
	return n
}

// AppendError appends the payload of an ERROR frame. message must be valid UTF-8.
func AppendError[T ~string | ~[]byte](dst, id []byte, code string, message T, e Extras) []byte {
	dst = AppendStr(append(dst, "\x83\xa2id"...), id)
	dst = append(dst, "\xa2ok\xc2\xa5error"...)
	dst = AppendMap(dst, 2+e.count())
	dst = AppendStr(append(dst, "\xa4code"...), code)
	dst = AppendStr(append(dst, "\xa7message"...), message)
	if e.Retryable {
		dst = append(dst, "\xa9retryable\xc3"...)
	}
	if e.QueueCapacity > 0 {
		dst = AppendInt(append(dst, "\xb5kernel_queue_capacity"...), int64(e.QueueCapacity))
	}
	if e.MaxConnections > 0 {
		dst = AppendInt(append(dst, "\xafmax_connections"...), int64(e.MaxConnections))
	}
	if e.RetryAfter > 0 {
		dst = AppendFloat(append(dst, "\xb3retry_after_seconds"...), e.RetryAfter)
	}
	return dst
}

// AppendRequest appends the payload of a request; body is an encoded map. A client uses it.
func AppendRequest[T, B ~string | ~[]byte](dst []byte, id, service, method T, body B) []byte {
	dst = AppendStr(append(dst, "\x84\xa2id"...), id)
	dst = AppendStr(append(dst, "\xa7service"...), service)
	dst = AppendStr(append(dst, "\xa6method"...), method)
	return append(append(dst, "\xa4body"...), body...)
}

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

// RateDecision is the reply of CheckRateLimit (kernel-ipc §4.9).
type RateDecision struct {
	Allowed                        bool
	Reason                         []byte
	LimitType                      string
	CurrentCount, Limit, Remaining int64
	RetryAfter                     float64 // seconds
}

// AppendRateDecision appends the eight-key map.
func AppendRateDecision(dst []byte, d *RateDecision) []byte {
	dst = AppendBool(append(dst, "\x88\xa7allowed"...), d.Allowed)
	dst = AppendBool(append(dst, "\xa8exceeded"...), !d.Allowed)
	dst = AppendStr(append(dst, "\xa6reason"...), d.Reason)
	dst = AppendStr(append(dst, "\xaalimit_type"...), d.LimitType)
	dst = AppendInt(append(dst, "\xadcurrent_count"...), d.CurrentCount)
	dst = AppendInt(append(dst, "\xa5limit"...), d.Limit)
	dst = AppendFloat(append(dst, "\xb3retry_after_seconds"...), d.RetryAfter)
	return AppendInt(append(dst, "\xa9remaining"...), d.Remaining)
}
