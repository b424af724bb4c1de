//go:build race || invariants

package bus

// poison overwrites memory that is about to be reused, so that a reader that kept it is found.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xCC
	}
}
