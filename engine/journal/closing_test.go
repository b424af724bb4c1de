package journal

import (
	"errors"
	"testing"
	"testing/synctest"
)

// closingStore lets its claim pass and blocks on pass afterwards; it keeps the last block.
type closingStore struct {
	instant
	pass chan struct{}
	last []byte
}

func (s *closingStore) WriteBlock(first Index, b []byte) error {
	if first > 1 || s.last != nil {
		<-s.pass
	}
	s.last = append([]byte(nil), b...)
	return nil
}

// TestNothingBehindADroppedRecord: a record that comes while the journal closes is dropped, and so
// is every later one, those of a request included: the index of a record is its place in the log.
func TestNothingBehindADroppedRecord(t *testing.T) {
	for _, waiting := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &closingStore{pass: make(chan struct{})}
			l, err := Open(s, Config{OnFailure: func(err error) { t.Errorf("waiting %v: the journal failed: %v", waiting, err) }})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Replay(0, func(Index, []byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
			l.Append([]byte("written"))
			synctest.Wait()
			want := l.Append([]byte("first"))
			if !waiting {
				s.pass <- struct{}{}
				synctest.Wait()
			}
			closed := make(chan error, 1)
			go func() { closed <- l.Close() }()
			synctest.Wait()
			dropped := l.Append([]byte("dropped"))
			l.Begin()
			l.Append([]byte("of a request"))
			l.End()
			close(s.pass)
			if err := <-closed; err != nil || !errors.Is(l.Err(), ErrClosed) {
				t.Errorf("waiting %v: closed with %v", waiting, err)
			}
			if l.Durable() != want || dropped <= want {
				t.Errorf("waiting %v: durable up to %d, want %d; %d was dropped", waiting, l.Durable(), want, dropped)
			}
		})
	}
}
