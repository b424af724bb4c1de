package mpack

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
