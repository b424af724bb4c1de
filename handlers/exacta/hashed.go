package exacta

import (
	"hash/maphash"

	"trunkline/engine/exacta"
)

// hashed makes a Sum of bytes that come in pieces, without an allocation.
type hashed [len(exacta.Sum{})]maphash.Hash

// start begins with one byte.
func (h *hashed) start(seeds *exacta.Seeds, b byte) {
	for i := range h {
		h[i].SetSeed(seeds[i])
		_ = h[i].WriteByte(b) // it does not fail
	}
}

// Write implements io.Writer. It does not fail.
func (h *hashed) Write(p []byte) (int, error) {
	for i := range h {
		_, _ = h[i].Write(p)
	}
	return len(p), nil
}

func (h *hashed) sum() (out exacta.Sum) {
	for i := range h {
		out[i] = h[i].Sum64()
	}
	return out
}
