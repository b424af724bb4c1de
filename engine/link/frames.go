package link

// Full reports whether reading ahead pauses with that many bytes and frames held; paused says that it does already. It does not
// allocate.
func (l *Limits) Full(bytes, frames int, paused bool) bool {
	if paused {
		return bytes > l.HeldBytes/2 || l.HeldFrames > 0 && frames > l.HeldFrames/2
	}
	return bytes >= l.HeldBytes || l.HeldFrames > 0 && frames >= l.HeldFrames
}

// Count returns how many frames end in input b, zero where nobody counts. It does not allocate.
func (l *Limits) Count(b []byte) int {
	if l.HeldFrames <= 0 || l.FramesIn == nil {
		return 0
	}
	return l.FramesIn(b)
}
