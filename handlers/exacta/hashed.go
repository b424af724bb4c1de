package exacta

import (
	"crypto/sha256"
	"hash"

	"trunkline/engine/exacta"
)

// hashed is a hash that is used again, without an allocation.
type hashed struct {
	h   hash.Hash
	buf [sha256.Size]byte
}

// start begins with one byte.
func (h *hashed) start(b byte) {
	if h.h == nil {
		h.h = sha256.New()
	}
	h.h.Reset()
	h.buf[0] = b
	_, _ = h.h.Write(h.buf[:1])
}

// Write implements io.Writer. It does not fail.
func (h *hashed) Write(p []byte) (int, error) { return h.h.Write(p) }

func (h *hashed) sum(out *exacta.Sum) { h.h.Sum(out[:0]) }
