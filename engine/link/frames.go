package link

// Full reports whether reading ahead pauses with so many bytes and frames; paused is whether it
// does already. It does not allocate.
func (l *Limits) Full(bytes, frames int, paused bool) bool {
	if paused {
		return bytes > l.AheadBytes/2 || l.AheadFrames > 0 && frames > l.AheadFrames/2
	}
	return bytes >= l.AheadBytes || l.AheadFrames > 0 && frames >= l.AheadFrames
}

// Count returns how many frames end in input b, zero without a count. It does not allocate.
func (l *Limits) Count(b []byte) int {
	if l.AheadFrames <= 0 || l.FramesIn == nil {
		return 0
	}
	return l.FramesIn(b)
}
