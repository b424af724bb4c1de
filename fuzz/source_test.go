package fuzz

// source is a program's bytes; after the last one it gives zeros.
type source struct{ b []byte }

func (s *source) done() bool { return len(s.b) == 0 }

func (s *source) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

// n chooses among n things, at most 256.
func (s *source) n(n int) int { return int(s.byte()) % n }

// upTo chooses from 0 to n, at most 65535.
func (s *source) upTo(n int) int { return (int(s.byte())<<8 | int(s.byte())) % (n + 1) }

func pick[T any](s *source, from ...T) T { return from[s.n(len(from))] }

// settings chooses the limits of a run. Frames stay large enough for any refusal.
func (s *source) settings() settings {
	set := defaultSettings()
	set.maxFrame = pick(s, 5242880, 5242880, 4096, 700)
	set.bufferEvents = pick(s, 16384, 1, 2, 3, 8)
	set.maxStreams = pick(s, 32, 1, 2, 3)
	set.maxTypes = pick(s, 256, 2, 3)
	set.queueCapacity = pick(s, 2048, 1, 2)
	set.maxProcesses = pick(s, 1000000, 2, 3, 4)
	set.lease = pick(s, int64(30000), 0, 5000)
	set.retention = pick(s, int64(86400000), 20000, 1000)
	set.queryDefault = pick(s, int64(5000), 700)
	set.framesPerTurn = pick(s, 256, 1, 3)
	set.chunkBytes = pick(s, 64<<10, 1, 200)
	set.unsentBytes = pick(s, 1<<20, len(kept), 300)
	set.turnBytes = pick(s, 1<<20, 64)
	set.maxSessions = pick(s, 10000, 10000, 1)
	set.maxEnvelopes = pick(s, 10000, 10000, 1)
	set.sessionRetention = pick(s, int64(3600000), 5000)
	set.envelopeRetention = pick(s, int64(86400000), 50000)
	return set
}
