package loadgen

import (
	"bytes"

	"trunkline/codec/jsonx"
	"trunkline/codec/ndjson"
)

// lines reads the replies of toolhost §2: one line each, in request order.
type lines struct {
	names   *jsonx.Names
	members [3]jsonx.Member
	scanned int
}

func newLines() *lines { return &lines{names: jsonx.NewNames("ok", "status", "error")} }

// wellBegun are the starts of nearly all good replies.
var wellBegun = [...]string{`{"ok":true,`, `{"ok": true,`, `{"ok":true}`}

func (l *lines) next(in []byte, r *reply) (n, need int, err error) {
	line, n, status, scanned := ndjson.Split(in, l.scanned, maxReply)
	l.scanned = scanned
	switch status {
	case ndjson.More:
		return 0, len(in) + 1, nil
	case ndjson.TooLong:
		return 0, 0, errTooLarge
	}
	return n, 0, l.read(line, r)
}

func (l *lines) read(line []byte, r *reply) error {
	*r = reply{}
	for _, start := range wellBegun {
		if len(line) >= len(start) && string(line[:len(start)]) == start {
			r.ok = true
			return nil
		}
	}
	if res, _ := l.names.Scan(line, jsonx.MaxDepth, l.members[:]); res != jsonx.ScanOK {
		return errMalformed
	}
	if r.ok = l.members[0].Kind == jsonx.True; r.ok {
		return nil
	}
	r.code = unknownCode
	if m := l.members[1]; m.Kind == jsonx.String && len(m.Raw) > 0 && string(m.Raw) != "OK" {
		r.code = clip(m.Raw)
	} else if m := l.members[2]; m.Kind == jsonx.String && len(m.Raw) > 0 {
		// What stands behind a colon is a detail: an identifier, a limit.
		kind, _, _ := bytes.Cut(m.Raw, []byte(":"))
		r.code = clip(kind)
	}
	return nil
}

func (l *lines) end(in []byte, r *reply) bool {
	line, status := ndjson.Last(in, maxReply)
	return status == ndjson.Line && l.read(line, r) == nil
}
