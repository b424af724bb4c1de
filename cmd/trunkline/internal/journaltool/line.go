package journaltool

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
)

// maxLine bounds a line of an export: the largest record, its base64, and its fields with each byte
// as an escape of six.
const maxLine = 8 * journal.MaxRecordBytes

// errLong means that a line is longer than any of an export.
var errLong = errors.New("it is too long")

// lines cuts a stream into lines.
type lines struct {
	in     *bufio.Reader
	most   int // bytes of a line
	buf    []byte
	number uint64 // of the last line
	read   uint64 // bytes
}

// next returns the next line that is not empty, without its end; io.EOF after the last one. It is
// valid until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		l.buf = l.buf[:0]
		l.number++
		for more := true; more; {
			part, err := l.in.ReadSlice('\n')
			l.read += uint64(len(part))
			if len(l.buf)+len(part) > l.most+1 {
				return nil, errLong
			}
			l.buf = append(l.buf, part...)
			switch more = err == bufio.ErrBufferFull; {
			case err == nil, more:
			case err == io.EOF && len(l.buf) == 0:
				return nil, io.EOF
			case err == io.EOF:
				return nil, fmt.Errorf("it has no end: the file is cut: %w", io.ErrUnexpectedEOF)
			default:
				return nil, err
			}
		}
		if text := bytes.TrimSpace(l.buf); len(text) > 0 {
			return text, nil
		}
	}
}

// line is a decoded line of an export. What Kind does not name is zero.
type line struct {
	Kind     string
	Entry    journal.Entry        // of a record or a claim
	Snapshot journal.SnapshotInfo // of snapshotKind
	Part     []byte               // of partKind
	Identity [16]byte             // of rowsKind
	Through  uint64               // of rowsKind
	Key      []byte               // of rowKind
	Value    []byte               // of rowKind
	Lines    uint64               // of endKind
}

// lineMembers are the members from which a line is decoded. All others are for its reader.
var lineMembers = []string{"kind", "index", "epoch", "time", "base64", "through", "bytes", "identity", "key", "value", "lines"}

// The places of lineMembers.
const (
	memberKind = iota
	memberIndex
	memberEpoch
	memberTime
	memberBase64
	memberThrough
	memberBytes
	memberIdentity
	memberKey
	memberValue
	memberLines
	members
)

// decoder decodes lines, and checks each against what an export of it would be.
type decoder struct {
	got      [members]jsonx.Value
	record   record
	data     []byte // decoded base64
	shown    []byte // the line as an export has it
	expected []member
}

type member struct {
	name, value []byte
	seen        bool
}

// decode decodes a line; l is valid until the next call. The members that are for people have to be
// what the record is: an edited line is not taken for the record that it was made from.
func (d *decoder) decode(text []byte, l *line) error {
	text = jsonx.TrimBOM(text)
	if p := jsonx.Check(text, jsonx.MaxDepth); !p.OK() {
		return fmt.Errorf("it is no JSON: %s", p.Append(nil))
	}
	if jsonx.ValueOf(text).Kind != jsonx.ObjectStart {
		return errors.New("it is no JSON object")
	}
	jsonx.Pick(text, lineMembers, d.got[:])
	*l = line{}
	kind, ok := d.got[memberKind].Text()
	if !ok {
		return errors.New("it has no member kind with a text")
	}
	l.Kind = string(kind)
	shown, err := d.parts(l)
	if err != nil {
		return err
	}
	d.shown = shown.End()
	return d.compare(text)
}

// parts decodes the members that count for the kind, and returns the line that they make.
func (d *decoder) parts(l *line) (jsonx.Builder, error) {
	o := jsonx.Build(d.shown[:0])
	switch l.Kind {
	case snapshotKind:
		s := &l.Snapshot
		err := cmp.Or(d.number(memberIndex, &s.Index), d.number(memberThrough, &s.Through), d.number(memberEpoch, &s.Epoch), d.number(memberBytes, &s.Bytes), d.time(&s.Time))
		return appendSnapshot(o, s), err
	case partKind:
		err := d.base64(memberBase64, &l.Part)
		return appendPart(o, l.Part), err
	case rowsKind:
		err := cmp.Or(d.number(memberThrough, &l.Through), d.identity(&l.Identity))
		return appendRows(o, l.Identity, l.Through), err
	case rowKind:
		err := d.base64(memberKey, &l.Key)
		l.Key = bytes.Clone(l.Key) // the value takes its place
		err = cmp.Or(err, d.base64(memberValue, &l.Value))
		return appendRow(o, l.Key, l.Value), err
	case endKind:
		err := d.number(memberLines, &l.Lines)
		return appendEnd(o, l.Lines), err
	}
	e := &l.Entry
	err := cmp.Or(d.number(memberIndex, &e.Index), d.number(memberEpoch, &e.Epoch), d.time(&e.Time))
	if e.Claim = l.Kind == claimKind; !e.Claim && err == nil {
		if err = d.base64(memberBase64, &e.Record); err != nil {
			return o, err
		}
		if err = parseRecord(e.Record, &d.record); err != nil {
			return o, fmt.Errorf("its record is no change that this version knows: %w", err)
		}
	}
	if err != nil {
		return o, err
	}
	o, _ = appendEntry(o, &d.record, e)
	return o, nil
}

// missing is the error for a member that a line must have.
func missing(m int, what string) error {
	if m == memberBase64 {
		return errors.New("it has no base64, which is the record itself: exports of earlier versions do not have it")
	}
	return fmt.Errorf("it has no member %s that is %s", lineMembers[m], what)
}

func (d *decoder) number(m int, n *uint64) (err error) {
	v := d.got[m]
	if v.Kind == jsonx.Number {
		if *n, err = strconv.ParseUint(string(v.Raw), 10, 64); err == nil {
			return nil
		}
	}
	return missing(m, "a whole number")
}

func (d *decoder) time(ns *int64) error {
	if text, ok := d.got[memberTime].Text(); ok {
		if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			*ns = at.UnixNano()
			return nil
		}
	}
	return missing(memberTime, "a time")
}

func (d *decoder) identity(id *[16]byte) error {
	if text, ok := d.got[memberIdentity].Text(); ok && len(text) == 2*len(id) {
		if _, err := hex.Decode(id[:], text); err == nil {
			return nil
		}
	}
	return missing(memberIdentity, "32 hexadecimal digits")
}

func (d *decoder) base64(m int, to *[]byte) (err error) {
	text, ok := d.got[m].Text()
	if !ok {
		return missing(m, "base64")
	}
	if d.data, err = decodeBase64(d.data[:0], text); err != nil {
		return fmt.Errorf("member %s: %w", lineMembers[m], err)
	}
	*to = d.data
	return nil
}

// compare looks whether every member of the line is as an export writes it. A member that the line
// lacks is one that another version did not write.
func (d *decoder) compare(text []byte) error {
	d.expected = d.expected[:0]
	o := jsonx.OpenObject(d.shown)
	for name, v, ok := o.Next(); ok; name, v, ok = o.Next() {
		d.expected = append(d.expected, member{name: name, value: v.Raw})
	}
	o = jsonx.OpenObject(text)
	for name, v, ok := o.Next(); ok; name, v, ok = o.Next() {
		i := slices.IndexFunc(d.expected, func(m member) bool { return string(m.name) == string(name) })
		switch {
		case i < 0:
			return fmt.Errorf("its member %.40q is not one of its kind", name)
		case d.expected[i].seen:
			return fmt.Errorf("its member %.40q is there twice", name)
		case !bytes.Equal(v.Raw, d.expected[i].value) && !bytes.Equal(jsonx.Compact(bytes.Clone(v.Raw)), d.expected[i].value):
			return fmt.Errorf("its member %.40q is not what its record has: the line was changed after the export", name)
		}
		d.expected[i].seen = true
	}
	return nil
}
