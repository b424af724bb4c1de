package tools

// The length of a token in bytes; shorter and longer runs of letters and digits are no tokens (toolhost §4.7).
const (
	minToken = 2
	maxToken = 64
)

// eachToken calls f with every token of text: runs of ASCII letters and digits, in lower case. The token is lent until f returns.
func eachToken(text []byte, f func(token []byte)) {
	var token [maxToken]byte
	n := 0 // the length of the run, maxToken+1 for any longer one
	for _, c := range text {
		c = lowerAlphanumeric(c)
		switch {
		case c == 0:
			if n >= minToken && n <= maxToken {
				f(token[:n])
			}
			n = 0
		case n < maxToken:
			token[n] = c
			n++
		default:
			n = maxToken + 1
		}
	}
	if n >= minToken && n <= maxToken {
		f(token[:n])
	}
}

// lowerAlphanumeric returns c in lower case if it is an ASCII letter or digit, and 0 otherwise.
func lowerAlphanumeric(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return c
	case c >= 'A' && c <= 'Z':
		return c | 0x20
	}
	return 0
}

// terms are the distinct tokens of a query with the counters to hold one document after the other against them.
type terms struct {
	index map[string]int
	df    []int // by term: how many documents have it
	tf    []int // by term: how often the document that count read last has it
	seen  []int // the terms with tf > 0, in the order of the document
	hits  int   // the sum of tf
}

// termsOf returns the terms of query, all counters 0.
func termsOf(query []byte) *terms {
	t := &terms{index: map[string]int{}}
	eachToken(query, func(token []byte) {
		if _, known := t.index[string(token)]; !known {
			t.index[string(token)] = len(t.index)
		}
	})
	t.df = make([]int, len(t.index))
	t.tf = make([]int, len(t.index))
	return t
}

// count sets tf, seen and hits to what text has of each term and returns how many tokens text has altogether.
func (t *terms) count(text []byte) (tokens int) {
	for _, i := range t.seen {
		t.tf[i] = 0
	}
	t.seen, t.hits = t.seen[:0], 0
	eachToken(text, func(token []byte) {
		tokens++
		i, ok := t.index[string(token)]
		if !ok {
			return
		}
		if t.tf[i] == 0 {
			t.seen = append(t.seen, i)
		}
		t.tf[i]++
		t.hits++
	})
	return tokens
}
