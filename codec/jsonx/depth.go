package jsonx

// MaxDepth is the deepest nesting that any function of this package follows; a larger limit acts as
// MaxDepth. It is the largest bound of any protocol (512 for envelopes; kernel-ipc D7 uses 128).
const MaxDepth = 512

// nest remembers for each open container whether it is an object: one bit per level, so that the
// state of a scan is a small value on the caller's stack.
type nest struct {
	depth   int
	objects [MaxDepth / 64]uint64
}

// push opens a container; it must not be called at MaxDepth.
func (n *nest) push(object bool) {
	word, bit := &n.objects[uint(n.depth)/64%uint(len(n.objects))], uint64(1)<<(uint(n.depth)%64)
	if object {
		*word |= bit
	} else {
		*word &^= bit
	}
	n.depth++
}

// inObject reports whether the innermost open container is an object; false when none is open.
func (n *nest) inObject() bool {
	if n.depth == 0 {
		return false
	}
	top := uint(n.depth - 1)
	return n.objects[top/64%uint(len(n.objects))]>>(top%64)&1 != 0
}
