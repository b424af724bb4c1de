//go:build !race

package transcode

import "testing"

func TestAppendMsgPackNoAllocs(t *testing.T) {
	for _, text := range transcodeTexts()[2:] { // the first ones hold a number that overflows
		dst := AppendMsgPack(nil, []byte(text))
		dst = append(dst, make([]byte, 5*len(text))...) // room for wide headers
		b := []byte(text)
		if n := testing.AllocsPerRun(100, func() { AppendMsgPack(dst[:0], b) }); n != 0 {
			t.Errorf("%.60q: %v allocations, want 0", text, n)
		}
	}
}
