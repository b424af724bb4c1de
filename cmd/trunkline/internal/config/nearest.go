package config

import "strings"

// nearest returns the known key closest to key by edit distance; the section may be missing or
// wrong. The first in table order wins a tie.
func nearest(key string) string {
	best, bestDist := "", -1
	for _, s := range table {
		_, name, _ := strings.Cut(s.key, delim)
		d := min(distance(key, s.key), 1+distance(key, name))
		if _, tail, ok := strings.Cut(key, delim); ok {
			d = min(d, 2+distance(tail, name))
		}
		if bestDist < 0 || d < bestDist {
			best, bestDist = s.key, d
		}
	}
	return best
}

// sectionEdits is how many edits away from a section the first word of a variable still counts as a
// misspelling of it.
const sectionEdits = 2

// nearSection reports whether the section of key is one of the table, or a misspelling of one.
func nearSection(key string) bool {
	word, _, _ := strings.Cut(key, delim)
	for _, s := range table {
		section, _, _ := strings.Cut(s.key, delim)
		if distance(word, section) <= sectionEdits {
			return true
		}
	}
	return false
}

// maxCompared bounds the quadratic work on a key that is not even close.
const maxCompared = 128

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	a = a[:min(len(a), maxCompared)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
