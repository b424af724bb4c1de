package builtin

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// The constants of BM25 (toolhost §4.7).
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

type document struct {
	file string // absolute path
	ts   int64  // ts_ms, Unix milliseconds; 0 if the line has none
	text []byte
	raw  []byte // the line itself, kept only for debug output

	tokens     int
	components [hashPeriod]float32 // of the normalized embedding
	overlap    float64             // occurrences of the query's terms for each term of the query
	emb        float64             // similarity to the query; below 0 for opposite directions
	bm25       float64
	score      float64
	maxSim     float64 // to the matches before it, when it was taken by mmr; not below 0
}

type scorer struct {
	query   []byte
	dim     int
	weights Weights
	now     time.Time
}

// run scores docs in two passes: document frequencies need all of the first. Tokens are read twice
// instead of kept, so that a query's memory is the text of its documents.
func (s *scorer) run(ctx context.Context, docs []*document) error {
	t := termsOf(s.query)
	total := 0
	for _, d := range docs {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.tokens = t.count(d.text)
		total += d.tokens
		for _, i := range t.seen {
			t.df[i]++
		}
	}
	average := float64(total) / float64(max(len(docs), 1))
	components := divideByNorm(hashComponents(s.query), s.dim)
	for _, d := range docs {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.count(d.text)
		d.overlap = float64(t.hits) / float64(max(len(t.tf), 1))
		d.bm25 = t.bm25(d.tokens, average, len(docs))
		d.components = divideByNorm(hashComponents(d.text), s.dim)
		d.emb = dotHashed(&components, &d.components, s.dim)
		d.score = s.score(d)
	}
	return nil
}

// bm25 returns the score of the document that count read last, tokens long, one of n.
func (t *terms) bm25(tokens int, average float64, n int) (sum float64) {
	length := 1 - bm25B
	if average > 0 {
		length += bm25B * float64(tokens) / average
	}
	for _, i := range t.seen {
		tf := float64(t.tf[i])
		idf := math.Log(float64(n+1)/float64(t.df[i]+1)) + 1
		sum += idf * tf * (bm25K1 + 1) / (tf + bm25K1*length)
	}
	return sum
}

// score returns the weighted sum of the parts of d. A sum that weights drove out of the range of
// numbers counts as 0: JSON has no way to write it, and sorting none to place it.
func (s *scorer) score(d *document) float64 {
	w := &s.weights
	age := max(float64(s.now.UnixMilli())-float64(d.ts), 0) / 1000
	sum := w.Overlap*d.overlap + w.Emb*d.emb + w.BM25*d.bm25 + w.Recency*math.Exp(-age/w.Tau)
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0
	}
	return sum
}

// best returns at most n of docs, which come newest first, by score, then by age.
func best(docs []*document, n int) []*document {
	byScore := slices.Clone(docs)
	slices.SortStableFunc(byScore, func(a, b *document) int { return cmp.Compare(b.score, a.score) })
	return byScore[:min(n, len(byScore))]
}

// rerankMMR takes up to n of candidates, sorted by score, by maximal marginal relevance: the most
// lambda*score - (1-lambda)*(greatest similarity to one taken), then the earlier (toolhost §4.7).
func rerankMMR(ctx context.Context, candidates []*document, n, dim int, lambda float64) ([]*document, error) {
	left := slices.Clone(candidates)
	var taken []*document
	for len(taken) < n && len(left) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next, most := 0, math.Inf(-1)
		for i, d := range left {
			if value := lambda*d.score - (1-lambda)*d.maxSim; value > most {
				next, most = i, value
			}
		}
		chosen := left[next]
		left = slices.Delete(left, next, next+1)
		for _, d := range left {
			d.maxSim = max(d.maxSim, dotHashed(&chosen.components, &d.components, dim))
		}
		taken = append(taken, chosen)
	}
	return taken, nil
}

// The length of a token in bytes; other runs of letters and digits are no tokens (toolhost §4.7).
const (
	minToken = 2
	maxToken = 64
)

// eachToken calls f with every token of text, in lower case. The token is lent until f returns.
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

func lowerAlphanumeric(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return c
	case c >= 'A' && c <= 'Z':
		return c | 0x20
	}
	return 0
}

type terms struct {
	index map[string]int
	df    []int // by term: how many documents have it
	tf    []int // by term: how often the document that count read last has it
	seen  []int // the terms with tf > 0, in the order of the document
	hits  int   // the sum of tf
}

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

// count counts each term in text, and returns how many tokens text has altogether.
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
