package codec

import (
	"bytes"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/errcode"
)

// maxDetail bounds technical_detail, in bytes (exacta §3.7).
const maxDetail = 4096

// appendHead appends a response up to the value of its member ok (exacta §3.3). A nil request_id
// cannot be read.
func appendHead(dst, requestID []byte, correlation ID, clock Clock, ok bool) []byte {
	dst = append(dst, `{"ipc_version":"1.0","type":"response","request_id":`...)
	dst = appendRequestID(dst, requestID)
	dst = append(dst, `,"correlation_id":"`...)
	dst = correlation.Append(dst)
	dst = append(dst, `","sent_at":"`...)
	dst = clock.Append(dst)
	if ok {
		return append(dst, `","ok":true,"result":`...)
	}
	return append(dst, `","ok":false,"result":null,"error":`...)
}

func appendRequestID(dst, id []byte) []byte {
	if id == nil {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '"'), id...), '"')
}

// AppendResult appends the response of a request that was done.
func AppendResult(dst, requestID []byte, correlation ID, clock Clock, result []byte) []byte {
	dst = appendHead(dst, requestID, correlation, clock, true)
	return append(append(dst, result...), okTail...)
}

const okTail = ",\"error\":null}\n"

// AppendFailure appends the response of a request that failed.
func AppendFailure(dst, requestID []byte, correlation ID, clock Clock, f *errcode.Fault) []byte {
	dst = appendHead(dst, requestID, correlation, clock, false)
	return append(appendFault(dst, f), "}\n"...)
}

// Prepared is the response of a request that failed, without what differs from one to the next.
type Prepared []byte

// Prepare returns the response with a fault.
func Prepare(f *errcode.Fault) Prepared {
	return AppendFailure(nil, []byte(ID{}.String()), ID{}, Clock{}, f)
}

// Where the parts of a response stand that differ.
const (
	idAt          = len(`{"ipc_version":"1.0","type":"response","request_id":"`)
	correlationAt = idAt + idLen + len(`","correlation_id":"`)
	sentAt        = correlationAt + idLen + len(`","sent_at":"`)
	idLen         = 36
)

// Append appends the response to a request, whose request_id can be read. It does not allocate.
func (p Prepared) Append(dst, requestID []byte, correlation ID, clock Clock) []byte {
	dst = append(dst, p...)
	line := dst[len(dst)-len(p):]
	copy(line[idAt:idAt+idLen], requestID)
	correlation.Append(line[correlationAt:correlationAt])
	clock.Append(line[sentAt:sentAt])
	return dst
}

// AppendRefusal appends the response of a message that was refused before it reached a project. It
// does not allocate.
func AppendRefusal(dst, requestID []byte, correlation ID, clock Clock, r *Refusal) []byte {
	dst = appendHead(dst, requestID, correlation, clock, false)
	return append(appendRefused(dst, r), "}\n"...)
}

// appendRefused appends the error object of a refusal.
func appendRefused(dst []byte, r *Refusal) []byte {
	row := errcode.Lookup(r.Code)
	dst = appendRow(dst, row)
	before, rest, ok := strings.Cut(row.Template, "{")
	dst = append(dst, before...)
	if ok {
		_, rest, _ = strings.Cut(rest, "}")
		dst = appendInside(dst, r.Value)
		dst = append(dst, rest...)
	}
	dst = append(dst, `","technical_detail":"`...)
	dst = append(append(dst, r.Detail...), r.Field...)
	dst = appendProblem(dst, r.problem)
	return appendRowTail(append(dst, '"'), row)
}

// appendProblem appends what is wrong with a text inside of a string.
func appendProblem(dst []byte, p jsonx.Problem) []byte {
	var room [96]byte
	for _, c := range p.Append(room[:0]) { // ASCII
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// appendInside appends the text of a peer inside of a string.
func appendInside(dst, text []byte) []byte {
	end := len(dst)
	if bytes.Contains(text, []byte("\u2028")) || bytes.Contains(text, []byte("\u2029")) {
		dst = AppendText(dst, string(text))
	} else {
		dst = jsonx.AppendString(dst, text) // as AppendText does, without a copy
	}
	return append(dst[:end], dst[end+1:len(dst)-1]...)
}

// appendRow appends an error object up to the beginning of its message.
func appendRow(dst []byte, row *errcode.Row) []byte {
	dst = append(append(dst, `{"code":"`...), row.Code...)
	dst = append(append(dst, `","category":"`...), row.Category...)
	dst = append(append(dst, `","severity":"`...), row.Severity...)
	return append(dst, `","message":"`...)
}

func appendRowTail(dst []byte, row *errcode.Row) []byte {
	dst = append(append(dst, `,"recovery_path":"`...), row.Recovery...)
	if row.Retryable {
		return append(dst, `","retryable":true}`...)
	}
	return append(dst, `","retryable":false}`...)
}

// appendFault appends an error object (exacta §3.7).
func appendFault(dst []byte, f *errcode.Fault) []byte {
	row := f.Row()
	dst = appendRow(dst, row)
	dst = AppendText(dst[:len(dst)-1], f.Message())
	dst = append(dst, `,"technical_detail":`...)
	dst = AppendText(dst, Clip(f.Detail, maxDetail))
	return appendRowTail(dst, row)
}

// Clip returns text, cut at a character where it has more bytes than most, which is at least 3. A
// cut text ends in "…". It does not allocate for one that is not cut.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}

// AppendAck appends the answer of a subscribe (exacta §3.5): result is nil where f is not.
func AppendAck(dst, requestID []byte, clock Clock, result []byte, f *errcode.Fault) []byte {
	dst = append(dst, `{"ipc_version":"1.0","type":"ack","request_id":`...)
	dst = append(appendRequestID(dst, requestID), `,"sent_at":"`...)
	dst = clock.Append(dst)
	if f == nil {
		dst = append(append(dst, `","ok":true,"result":`...), result...)
		return append(dst, okTail...)
	}
	dst = append(dst, `","ok":false,"result":null,"error":`...)
	return append(appendFault(dst, f), "}\n"...)
}

// codeMark stands before the code of a response that failed. Quotes inside of strings are escaped,
// so it is in no other place of its head.
var codeMark = []byte(`","ok":false,"result":null,"error":{"code":"`)

// headBytes is more than a response has before its code.
const headBytes = 256

// CodeOf returns the error code of a response, nil if it is ok. It is a part of the response.
func CodeOf(response []byte) []byte {
	_, rest, failed := bytes.Cut(response[:min(len(response), headBytes)], codeMark)
	if !failed {
		return nil
	}
	code, _, _ := bytes.Cut(rest, []byte{'"'})
	return code
}
