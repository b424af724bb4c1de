package threadstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore/keyindex"
)

// The row of a message:
//
//	 0      1       2          10              26
//	+------+-------+----------+---------------+-----------+---------+---------+-----------------+
//	| vers | flags | created  | identifier    | reply     | digest  | lengths | sender, session,|
//	|      |       | ms, u64  | 16 bytes      | 16, if any| 32,     | varints | key, body,      |
//	|      |       |          |               |           | if a key|         | metadata        |
//	+------+-------+----------+---------------+-----------+---------+---------+-----------------+
//
// Integers are big endian. Flags are the kind, whether there is a reply and a key, and whether the
// text was erased. The lengths are those of sender, session, key (if there is one) and body;
// metadata is the rest. Body and metadata are as read_messages shows them: what is written around
// them is not kept.
const (
	rowVersion = 2
	rowHead    = 1 + 1 + 8 + idBytes
	digestSize = 32

	rowKind   = 3
	rowReply  = 4
	rowKeyed  = 8
	rowErased = 16
	rowFlags  = rowKind | rowReply | rowKeyed | rowErased
)

// message is a row that was parsed. Its slices are parts of the row.
type message struct {
	created  int64
	id       rawID
	kind     Kind
	erased   bool
	replies  bool // to reply
	reply    rawID
	sender   []byte
	session  []byte
	key      []byte // empty: none
	digest   []byte // with a key
	body     []byte // between the quotes of a JSON string
	metadata []byte // empty: none
}

var errBadRow = errors.New("cannot parse the row of a message")

func parseRow(row []byte) (m message, err error) {
	if len(row) < rowHead || row[0] != rowVersion || row[1] > rowFlags || row[1]&rowKind > uint8(System) {
		return m, errBadRow
	}
	flags := row[1]
	m.kind, m.replies, m.erased = Kind(flags&rowKind), flags&rowReply != 0, flags&rowErased != 0
	m.created = int64(binary.BigEndian.Uint64(row[2:]))
	copy(m.id[:], row[10:])
	rest, ok := row[rowHead:], true
	if m.replies {
		if len(rest) < idBytes {
			return m, errBadRow
		}
		copy(m.reply[:], rest)
		rest = rest[idBytes:]
	}
	if flags&rowKeyed != 0 {
		if len(rest) < digestSize {
			return m, errBadRow
		}
		m.digest, rest = rest[:digestSize], rest[digestSize:]
	}
	var lengths [4]int
	for i := range lengths {
		if i == 2 && flags&rowKeyed == 0 {
			continue
		}
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)) {
			return m, errBadRow
		}
		lengths[i], rest = int(n), rest[size:]
	}
	for i, part := range [...]*[]byte{&m.sender, &m.session, &m.key, &m.body} {
		if ok = ok && lengths[i] <= len(rest); ok {
			*part, rest = rest[:lengths[i]], rest[lengths[i]:]
		}
	}
	if !ok {
		return m, errBadRow
	}
	m.metadata = rest
	return m, nil
}

// appendRow appends the row of a post. reply is the message that it replies to, nil for none.
func appendRow(dst []byte, a *Actor, p *Post, reply, id *rawID, created int64) []byte {
	flags := uint8(p.Kind)
	if reply != nil {
		flags |= rowReply
	}
	if len(p.Key) > 0 {
		flags |= rowKeyed
	}
	dst = binary.BigEndian.AppendUint64(append(dst, rowVersion, flags), uint64(created))
	dst = append(dst, id[:]...)
	if reply != nil {
		dst = append(dst, reply[:]...)
	}
	if len(p.Key) > 0 {
		dst = append(dst, p.Digest[:]...)
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(len(a.Agent))), uint64(len(a.Session)))
	if len(p.Key) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(p.Key)))
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Body)))
	dst = append(append(append(dst, a.Agent...), a.Session...), p.Key...)
	return append(append(dst, p.Body...), p.Metadata...)
}

// appendJSON appends message seq as read_messages shows it (threads §4.4).
func (m *message) appendJSON(dst []byte, seq uint64) []byte {
	dst = append(dst, `{"message_id":"`...)
	dst = appendID(dst, messagePrefix, &m.id)
	dst = append(dst, `","schema_version":1,"seq":`...)
	dst = appendUint(dst, seq)
	dst = append(append(append(dst, `,"kind":"`...), m.kind.String()...), `","body":"`...)
	dst = append(append(dst, m.body...), '"')
	if len(m.metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), m.metadata...)
	}
	if m.replies {
		dst = append(appendID(append(dst, `,"in_reply_to":"`...), messagePrefix, &m.reply), '"')
	}
	dst = jsonx.AppendString(append(dst, `,"sender_agent_id":`...), m.sender)
	dst = jsonx.AppendString(append(dst, `,"sender_session_id":`...), m.session)
	dst = append(dst, `,"created_at":"`...)
	dst = append(AppendTime(dst, m.created), '"')
	if m.erased {
		dst = append(dst, `,"erased":true`...)
	}
	return append(dst, '}')
}

// Keys of rows. Numbers are big endian, so that rows of a thread lie in their order.
const (
	rowMessage = 'm' // thread:8 last:8    -> run of messages
	rowKey     = 'k' // the index of idempotency keys
	rowAudit   = 'a' // len u16, workspace, event:8 -> auditEvent
	rowJob     = 'j' // thread:8 job:8     -> jobState
	rowJobKey  = 'q' // hash:16            -> the key of the job, updated:8
	rowMark    = 'l' // -> lineage:16 index:8, of the archive that the rows belong to
	rowPurged  = 'p' // -> erasure:8, the last one whose text no file of the rows has
)

func appendMessageKey(dst []byte, thread, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(dst, rowMessage), thread), seq)
}

func appendAuditKey(dst []byte, workspace string, event uint64) []byte {
	dst = append(binary.BigEndian.AppendUint16(append(dst, rowAudit), uint16(len(workspace))), workspace...)
	return binary.BigEndian.AppendUint64(dst, event)
}

// jobKeyBytes is the length of the key of a job.
const jobKeyBytes = 1 + 8 + 8

func appendJobKey(dst []byte, thread, job uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(dst, rowJob), thread), job)
}

// CheckRows reads all rows and calls bad with those that cannot be parsed. It returns how many
// there are, and an error where they cannot be read to their end.
func CheckRows(r Rows, bad func(error)) (n uint64, err error) {
	var buf []byte
	err = r.Scan(nil, nil, false, func(key, value []byte) bool {
		n++
		if err := checkRow(key, value, &buf); err != nil {
			bad(fmt.Errorf("row %x: %w", key, err))
		}
		return true
	})
	return n, err
}

func checkRow(key, value []byte, buf *[]byte) error {
	switch key[0] {
	case rowMessage:
		if len(key) != messageKeyBytes {
			return errBadRun
		}
		_, run, _, err := parseRun(key, value, buf)
		for len(run) > 0 && err == nil {
			var row []byte
			if row, run, err = nextInRun(run); err == nil {
				_, err = parseRow(row)
			}
		}
		return err
	case rowKey:
		return keyindex.CheckRow(key, value)
	case rowAudit:
		return unmarshal(new(auditEvent), value)
	case rowJob:
		return unmarshal(new(jobState), value)
	case rowJobKey:
		if len(value) != jobKeyBytes+8 {
			return errBadRow
		}
		return nil
	case rowPurged:
		if len(value) != 8 {
			return errBadRow
		}
		return nil
	case rowMark:
		if len(key) != 1 || len(value) != lineageBytes+8 {
			return errBadRow
		}
		return nil
	}
	return fmt.Errorf("%w: kind %q", errBadRow, key[0])
}

// messageKeyBytes is the length of the key of a run.
const messageKeyBytes = 1 + 8 + 8

// RowsOf returns which rows a snapshot belongs to, and up to which mark it needs them, if rec is
// its record with that.
func RowsOf(rec []byte) (identity [16]byte, mark uint64, ok bool) {
	var s engineState
	if len(rec) == 0 || rec[0] != snapEngine || unmarshal(&s, rec[1:]) != nil {
		return identity, 0, false
	}
	copy(identity[:], s.Identity)
	return identity, s.Stored, true
}
