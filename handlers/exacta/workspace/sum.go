package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Sum returns the SHA-256 of b as lower-case hex (exacta §4.18).
func Sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
