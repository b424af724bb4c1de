//go:build race || invariants

package poison

// On reports whether Fill overwrites.
const On = true

// Fill overwrites b[:len(b)] with Byte. It does not allocate.
func Fill(b []byte) {
	for i := range b {
		b[i] = Byte
	}
}
