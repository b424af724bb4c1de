package mpack

// Narrow rewrites the headers of all arrays and maps in b, MessagePack that the Scanner accepted, in their smallest class and
// returns the result, which is the front of b. It is for a writer that learns how many members a container has only at its end:
// it puts a wide header first and the count into it later. One pass, in place; it does not allocate. On other bytes it neither
// panics nor ends up longer than b.
func Narrow(b []byte) []byte {
	out, run := 0, 0 // b[:out] is done; b[run:i] comes next, as it is
	for i := 0; i < len(b); {
		l := leads[b[i]]
		if l.class != array && l.class != mapping {
			i = Next(b, i)
			continue
		}
		n, content, ok := count(b, i, l)
		if !ok {
			break
		}
		if l.size > 0 {
			out += copy(b[out:], b[run:i])
			if l.class == array {
				out = len(AppendArray(b[:out], n))
			} else {
				out = len(AppendMap(b[:out], n))
			}
			run = content
		}
		i = content
	}
	out += copy(b[out:], b[run:])
	return b[:out]
}
