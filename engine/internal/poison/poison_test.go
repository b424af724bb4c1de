package poison

import (
	"bytes"
	"testing"
)

func TestFill(t *testing.T) {
	b := []byte("lent")
	Fill(b)
	want := []byte("lent")
	if On {
		want = bytes.Repeat([]byte{Byte}, 4)
	}
	if !bytes.Equal(b, want) {
		t.Fatalf("Fill with On=%v left %x, want %x", On, b, want)
	}
	Fill(nil)
}
