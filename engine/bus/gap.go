package bus

// gapMarker returns the message that stands for lost events (kernel-ipc §4.18, D37), with one
// reference for the caller. It returns nil when the marker would exceed the frame bound: a peer
// drops the connection on such a frame (kernel-ipc §2.1).
func (s *Stream) gapMarker(lost uint64) *Message {
	m := s.bus.NewMessage(0)
	m.Body = s.bus.cfg.GapBody(m.Body, lost)
	if len(m.Body)+s.overhead > s.bus.cfg.MaxBody {
		m.Release()
		return nil
	}
	return m
}
