//go:build race || invariants

package bus

// poison overwrites memory that is about to be reused, so that a reader that kept it fails its test.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xCC
	}
}
