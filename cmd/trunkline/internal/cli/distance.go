package cli

// maxCompared bounds the quadratic work on a name that is not even close.
const maxCompared = 128

// Distance is the Levenshtein distance of two names in bytes; of a the first 128 are compared. A
// small one separates misspellings from other names.
func Distance(a, b string) int {
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
