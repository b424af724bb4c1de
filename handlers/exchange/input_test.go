package exchange

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadAllAtItsLimit(t *testing.T) {
	f := func(n, limit int, want error) {
		t.Helper()
		text := strings.Repeat("x", n)
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			got, err := readAll(r, nil, limit, int64(n))
			if err != want {
				t.Errorf("%d bytes at limit %d: %v, want %v", n, limit, err, want)
			}
			if want == nil && string(got) != text {
				t.Errorf("%d bytes at limit %d: got %d bytes", n, limit, len(got))
			}
		}
	}
	f(0, 10, nil)
	f(9, 10, nil)
	f(10, 10, nil)
	f(11, 10, errTooLarge)
	f(firstBuffer-1, firstBuffer, nil)
	f(firstBuffer, firstBuffer, nil)
	f(firstBuffer+1, firstBuffer, errTooLarge)
	f(3*firstBuffer, 3*firstBuffer, nil)
	f(3*firstBuffer+1, 3*firstBuffer, errTooLarge)
}

func TestReadingStopsAtTheLimit(t *testing.T) {
	r := strings.NewReader(strings.Repeat("x", 100))
	if _, err := readAll(r, make([]byte, 0, 64), 10, 0); err != errTooLarge || r.Len() != 89 {
		t.Errorf("%v with %d bytes left, want 89", err, r.Len())
	}
}

func TestReadAllReusesMemory(t *testing.T) {
	buf := make([]byte, 5, 64)
	got, err := readAll(strings.NewReader("hello"), buf, 100, 5)
	if err != nil || string(got) != "hello" || &got[0] != &buf[0] {
		t.Errorf("%q, %v, or other memory", got, err)
	}
}

func TestReadAllKeepsErrors(t *testing.T) {
	broken := errors.New("broken")
	got, err := readAll(io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), nil, 10, 0)
	if err != broken || string(got) != "ab" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := readAll(idle{}, nil, 10, 0); err != io.ErrNoProgress {
		t.Errorf("a reader without bytes: %v", err)
	}
}

// idle never has anything and never ends.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestAnAnnouncedSizeIsBelievedOnlyInPart(t *testing.T) {
	f := func(sent int, announced int64, most int) {
		t.Helper()
		got, err := readAll(bytes.NewReader(make([]byte, sent)), nil, 1<<30, announced)
		if err != nil || len(got) != sent || cap(got) > most {
			t.Errorf("%d of %d bytes take %d bytes of memory, want at most %d (%v)", sent, announced, cap(got), most, err)
		}
	}
	f(2, 1<<40, firstBuffer)
	f(2, -1, firstBuffer)
	f(firstBuffer+1, 1<<29, 2*firstBuffer)
	f(firstBuffer+1, trust*firstBuffer, trust*firstBuffer+1)
	f(trust*firstBuffer, trust*firstBuffer, trust*firstBuffer+1)
	f(trust*firstBuffer, 0, 2*trust*firstBuffer)
}
