package link

// Front returns how many bytes the frame at the front of b takes. b begins at a frame boundary and holds whole frames; where
// FrameLen is nil or cannot tell, all of b counts as one. It does not allocate.
func (l *Limits) Front(b []byte) int {
	if l.FrameLen != nil {
		if n := l.FrameLen(b); n > 0 && n < len(b) {
			return n
		}
	}
	return len(b)
}

// Cut returns how many bytes of b[sent:] still belong to the frame that b[:sent] ends in, zero where sent is a frame boundary.
// b begins at a frame boundary and holds whole frames. It does not allocate.
func (l *Limits) Cut(b []byte, sent int) int {
	at := 0
	for at < sent {
		at += l.Front(b[at:])
	}
	return at - sent
}

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
