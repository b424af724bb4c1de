package threads

import (
	"encoding/binary"
	"errors"

	"trunkline/codec/jsonx"
)

// The row of a message:
//
//	 0      1          9               25
//	+------+----------+---------------+----------------+--------------+---------------+------+
//	| vers | created  | identifier    | len sender u16 | len key u8   | key, digest   | JSON |
//	|      | ms, u64  | 16 bytes      | sender         |              | 32, if a key  |      |
//	+------+----------+---------------+----------------+--------------+---------------+------+
//
// The JSON is what read_messages shows. Integers are big endian.
const (
	rowVersion = 1
	rowHead    = 1 + 8 + idBytes
	digestSize = 32
)

// message is a row that was parsed. Its slices are parts of the row.
type message struct {
	created int64
	id      rawID
	sender  []byte
	key     []byte // empty: none
	digest  []byte // with a key
	json    []byte
}

var errBadRow = errors.New("cannot parse the row of a message")

func parseRow(row []byte) (m message, err error) {
	if len(row) < rowHead+3 || row[0] != rowVersion {
		return m, errBadRow
	}
	m.created = int64(binary.BigEndian.Uint64(row[1:]))
	copy(m.id[:], row[9:])
	rest := row[rowHead:]
	n := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < n+1 {
		return m, errBadRow
	}
	m.sender, rest = rest[:n], rest[n:]
	k := int(rest[0])
	if rest = rest[1:]; k > 0 {
		if len(rest) < k+digestSize {
			return m, errBadRow
		}
		m.key, m.digest, rest = rest[:k], rest[k:k+digestSize], rest[k+digestSize:]
	}
	m.json = rest
	return m, nil
}

// appendRow appends the row of a post.
func appendRow(dst []byte, a *Actor, p *Post, seq uint64, id *rawID, created int64) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, rowVersion), uint64(created))
	dst = append(dst, id[:]...)
	dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(a.Agent))), a.Agent...)
	dst = append(dst, byte(len(p.Key)))
	if len(p.Key) > 0 {
		dst = append(append(dst, p.Key...), p.Digest[:]...)
	}
	return appendMessage(dst, a, p, seq, id, created)
}

// appendMessage appends a message as read_messages shows it (threads §4.4).
func appendMessage(dst []byte, a *Actor, p *Post, seq uint64, id *rawID, created int64) []byte {
	dst = append(dst, `{"message_id":"`...)
	dst = appendID(dst, messagePrefix, id)
	dst = append(dst, `","schema_version":1,"seq":`...)
	dst = appendUint(dst, seq)
	dst = append(append(append(dst, `,"kind":"`...), p.Kind.String()...), `","body":"`...)
	dst = append(append(dst, p.Body...), '"')
	if len(p.Metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), p.Metadata...)
	}
	if len(p.InReplyTo) > 0 {
		dst = jsonx.AppendString(append(dst, `,"in_reply_to":`...), p.InReplyTo)
	}
	dst = jsonx.AppendString(append(dst, `,"sender_agent_id":`...), a.Agent)
	dst = jsonx.AppendString(append(dst, `,"sender_session_id":`...), a.Session)
	dst = append(dst, `,"created_at":"`...)
	dst = AppendTime(dst, created)
	return append(dst, `"}`...)
}

// Keys of rows. Numbers are big endian, so that rows of a thread lie in their order.
const (
	rowMessage = 'm' // thread:8 last:8    -> run of messages
	rowKey     = 'k' // the index of idempotency keys
	rowAudit   = 'a' // len u16, workspace, event:8 -> auditEvent
	rowJob     = 'j' // thread:8 job:8     -> jobState
	rowJobKey  = 'q' // hash:16            -> the key of the job, updated:8
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
