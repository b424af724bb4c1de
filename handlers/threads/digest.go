package threads

import (
	"crypto/sha256"
	"hash"
	"strconv"

	"trunkline/codec/jsonx"
)

// digester makes the fingerprints of payloads (threads §4.3). The zero digester is ready; it does
// not allocate once it was used.
type digester struct {
	canonical jsonx.Canonical
	hash      hash.Hash // of a payload that is longer than one write
	begun     bool      // hash has something
	last      bool      // the write that comes is the last one
	sum       [sha256.Size]byte
}

func (d *digester) begin() *jsonx.Canonical {
	d.begun, d.last = false, false
	d.canonical.Start(d)
	return &d.canonical
}

// Write implements io.Writer. Most payloads are one write: they take half the time of a hash that
// is kept.
func (d *digester) Write(p []byte) (int, error) {
	switch {
	case d.begun:
		return d.hash.Write(p)
	case d.last:
		d.sum = sha256.Sum256(p)
		return len(p), nil
	case d.hash == nil:
		d.hash = sha256.New()
	}
	d.hash.Reset()
	d.begun = true
	return d.hash.Write(p)
}

func (d *digester) end() [sha256.Size]byte {
	d.last = true
	if d.canonical.End(); d.begun {
		d.hash.Sum(d.sum[:0])
	}
	return d.sum
}

// post is the fingerprint of a message. body is the contents of a JSON string, metadata an object
// or empty, deliver a time or 0.
func (d *digester) post(body []byte, deliver int64, inReplyTo []byte, kind string, metadata []byte) [sha256.Size]byte {
	c := d.begin()
	c.Literal(`{"body":`)
	c.Text(body, true)
	if deliver != 0 {
		c.Literal(`,"deliver_at":`)
		c.Value(strconv.AppendInt(nil, deliver, 10))
	}
	if len(inReplyTo) > 0 {
		c.Literal(`,"in_reply_to":`)
		c.Text(inReplyTo, false)
	}
	c.Literal(`,"kind":"`)
	c.Literal(kind)
	c.Literal(`"`)
	if len(metadata) > 0 {
		c.Literal(`,"metadata":`)
		c.Value(metadata)
	}
	c.Literal(`,"schema_version":1}`)
	return d.end()
}

// creation is the fingerprint of a thread that is created.
func (d *digester) creation(title []byte, kind string, participants [][]byte) [sha256.Size]byte {
	c := d.begin()
	c.Literal(`{"participants":[`)
	d.texts(participants)
	c.Literal(`],"title":`)
	c.Text(title, false)
	c.Literal(`,"type":"`)
	c.Literal(kind)
	c.Literal(`"}`)
	return d.end()
}

// texts is the fingerprint's list of texts.
func (d *digester) texts(list [][]byte) {
	for i, text := range list {
		if i > 0 {
			d.canonical.Literal(",")
		}
		d.canonical.Text(text, false)
	}
}

// trigger is the fingerprint of a request to wake an agent.
func (d *digester) trigger(thread, target, reason, prompt []byte) [sha256.Size]byte {
	c := d.begin()
	c.Literal("[")
	d.texts([][]byte{thread, target, reason, prompt})
	c.Literal("]")
	return d.end()
}
