package builtin

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEachToken(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var got []string
		eachToken([]byte(text), func(token []byte) { got = append(got, string(token)) })
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	f("", "")
	f("a b1 C", "b1")
	f("Hello, WORLD_x2!", "hello world x2")
	f("größe", "gr")
	f("\x00ab\xffcd", "ab cd")
	most := strings.Repeat("x", 64)
	f(most, most)
	f(most+"x", "")
	f(most+"xy zz "+most, "zz "+most)
	f("@AZ[`az{/09:", "az az 09")
}

func TestEachTokenModel(t *testing.T) {
	runs := regexp.MustCompile(`[A-Za-z0-9]+`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-zA-Z0-9]{0,3}|[a-z]{62,67}|[ -/é]){0,9}`).Draw(t, "text")
		var got, want []string
		eachToken([]byte(text), func(token []byte) { got = append(got, string(token)) })
		for _, run := range runs.FindAllString(text, -1) {
			if len(run) >= 2 && len(run) <= 64 {
				want = append(want, strings.ToLower(run))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
	})
}

// TestBM25 compares with the formula as it is written in toolhost §4.7.
func TestBM25(t *testing.T) {
	word := rapid.SampledFrom([]string{"aa", "bb", "cc", "dd", "x"})
	rapid.Check(t, func(t *rapid.T) {
		query := strings.Join(rapid.SliceOfN(word, 0, 4).Draw(t, "query"), " ")
		texts := rapid.SliceOfN(rapid.SliceOfN(word, 0, 6), 1, 5).Draw(t, "texts")
		var docs []*document
		for _, words := range texts {
			docs = append(docs, &document{text: []byte(strings.Join(words, " "))})
		}
		s := scorer{query: []byte(query), dim: 16, weights: Weights{Tau: 1}}
		if err := s.run(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		for i, d := range docs {
			overlap, bm25 := scoreModel(query, texts, i)
			if math.Abs(d.bm25-bm25) > 1e-9 || math.Abs(d.overlap-overlap) > 1e-9 {
				t.Fatalf("document %d: got %v and %v, want %v and %v", i, d.overlap, d.bm25, overlap, bm25)
			}
		}
	})
}

func scoreModel(query string, texts [][]string, at int) (overlap, bm25 float64) {
	count := func(words []string, word string) (n float64) {
		for _, w := range words {
			if w == word {
				n++
			}
		}
		return n
	}
	length := func(words []string) float64 { return float64(len(words)) - count(words, "x") }
	total := 0.0
	for _, words := range texts {
		total += length(words)
	}
	n := float64(len(texts))
	distinct := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(strings.Fields(query)))), func(w string) bool { return w == "x" })
	for _, q := range distinct {
		df := 0.0
		for _, words := range texts {
			df += min(count(words, q), 1)
		}
		if tf := count(texts[at], q); tf > 0 {
			overlap += tf / float64(len(distinct))
			bm25 += (math.Log((n+1)/(df+1)) + 1) * tf * 2.2 / (tf + 1.2*(1-0.75+0.75*length(texts[at])/(total/n)))
		}
	}
	return overlap, bm25
}

func TestBest(t *testing.T) {
	a, b, c, d := &document{score: 1}, &document{score: 2}, &document{score: 1}, &document{score: 2}
	docs := []*document{a, b, c, d}
	if got := best(docs, 9); !slices.Equal(got, []*document{b, d, a, c}) {
		t.Errorf("got %v", got)
	}
	if got := best(docs, 3); !slices.Equal(got, []*document{b, d, a}) {
		t.Errorf("got %v", got)
	}
}

// TestMMR compares with the definition: similarities are looked up again for every choice.
func TestMMR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const dim = 16
		var docs []*document
		for _, text := range rapid.SliceOfN(rapid.StringMatching(`[ab]{0,2}`), 0, 8).Draw(t, "texts") {
			docs = append(docs, &document{
				text:       []byte(text),
				score:      float64(rapid.IntRange(0, 3).Draw(t, "score")) / 2,
				components: divideByNorm(hashComponents(text), dim),
			})
		}
		docs = best(docs, len(docs))
		n, lambda := rapid.IntRange(0, 9).Draw(t, "n"), float64(rapid.IntRange(0, 4).Draw(t, "lambda"))/4
		got, err := rerankMMR(t.Context(), docs, n, dim, lambda)
		if want := mmrModel(docs, n, dim, lambda); err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func mmrModel(docs []*document, n, dim int, lambda float64) (taken []*document) {
	for range min(n, len(docs)) {
		var next *document
		most := math.Inf(-1)
		for _, d := range docs {
			sim := 0.0
			for _, other := range taken {
				sim = max(sim, dotHashed(&d.components, &other.components, dim))
			}
			if v := lambda*d.score - (1-lambda)*sim; v > most && !slices.Contains(taken, d) {
				next, most = d, v
			}
		}
		taken = append(taken, next)
	}
	return taken
}

func TestAppendNumber(t *testing.T) {
	f := func(x float64, want string) {
		t.Helper()
		if got := string(appendNumber(nil, x)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f(0, "0")
	f(-0.5, "-0.5")
	f(math.Nextafter(0.3, 1), "0.30000000000000004")
	f(1e-6, "0.000001")
	f(1e-7, "1e-07")
	f(1e21, "1e+21")
	f(123456, "123456")
}
