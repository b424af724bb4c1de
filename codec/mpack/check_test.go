package mpack

import "testing"

func TestCheck(t *testing.T) {
	var sc Scanner
	f := func(b string, want Problem) {
		t.Helper()
		if got := sc.Check([]byte(b)); got != want {
			t.Errorf("%x: %q, want %q", b, got.Text(), want.Text())
		}
	}
	f("\x01", NoProblem)
	f("\x82\xa1a\x01\xa1b\x92\xc0\xc3", NoProblem)
	f("", Truncated)
	f("\x82\xa1a\x01", Truncated)
	f("\x01\x02", TrailingBytes)
	f("\x81\x01\x01", KeyNotString)
	f("\xc4\x00", BinOrExt)
	f("\xa1\xff", BadUTF8)
}
