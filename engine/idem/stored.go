package idem

import (
	"bytes"
	"strings"
)

// Stored is the outcome of one execution (toolhost §4.3: every outcome of an execution that
// started, D17). It is shared and immutable, and stays valid after its entry is gone.
type Stored struct {
	// Status is the caller's code of how the tool ended.
	Status uint8
	// Output and Dispatch are JSON texts; empty ones come back as nil.
	Output   []byte
	Error    string
	Dispatch []byte
	// Token is the SHA-256 of the lease token that the execution consumed, if HasToken (D20).
	Token    [32]byte
	HasToken bool
	// Index is that of the change which ended the execution; 0 without a journal. Finish sets it.
	Index uint64
}

// size returns the bytes of r that count against Config.MaxBytes: its texts. It does not allocate.
func (r *Stored) size() int64 { return int64(len(r.Output) + len(r.Error) + len(r.Dispatch)) }

// clone returns a copy of r that shares no memory with it, so that what is kept is what is counted.
// Wrong bytes in texts become U+FFFD: other text could be neither answered nor journalled.
func (r *Stored) clone() *Stored {
	c := *r
	c.Output, c.Dispatch = text(r.Output), text(r.Dispatch)
	c.Error = strings.Clone(strings.ToValidUTF8(r.Error, "\uFFFD"))
	c.Index = 0
	return &c
}

func text(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}
