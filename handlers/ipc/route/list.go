package route

import (
	"math"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

const (
	// pageRows is how many rows a merge asks all partitions for together: some 5 MiB at most.
	pageRows = 1024
	// rowBytes bounds a row with its creation sequence: five identifiers and the counters.
	rowBytes = 6 << 10
)

// listing is a ListProcesses. It merges the rows of all partitions by their creation sequences,
// which are those of the owners' clocks, page by page.
type listing struct {
	o      *op
	filter []byte // the members state and user_id of the request, encoded
	pairs  int    // how many they are
	limit  int64  // 0: none
	pages  []page // by partition

	rows  []byte // nothing once they are too many for a frame
	size  int    // of all rows
	count int64
	last  uint64 // creation sequence of the last row
}

// page is the rows of a partition that were not taken.
type page struct {
	rows, keys mpack.List
	row        []byte // the first one; nil: none
	key        uint64
	cursor     uint64 // behind which the next page begins
	more       bool   // there is one
}

var listFields = mpack.Fields("state", "user_id", "cursor", "limit")

// listProcesses is ListProcesses. Partition 0 refuses what is no listing.
func (s *session) listProcesses(whole []byte) bool {
	var f [4]mpack.Value
	s.scan.ParseFields(s.req.Body, 0, listFields, f[:])
	li := &listing{pages: make([]page, len(s.legs))}
	for i, name := range [...]string{"state", "user_id"} {
		switch v := &f[i]; {
		case v.Kind == mpack.Absent || v.Kind == mpack.Nil:
		case v.Kind == mpack.Str && len(v.Data) <= wire.MaxIdentifier:
			li.filter = mpack.AppendStr(mpack.AppendStr(li.filter, name), v.Data)
			li.pairs++
		default:
			return s.pass(0, whole, true)
		}
	}
	cursor, limit := &f[2], &f[3]
	if !optional(cursor, 0) || !optional(limit, 1) {
		return s.pass(0, whole, true)
	}
	if limit.Kind == mpack.Int {
		li.limit = limit.Int
	}
	li.o = s.begin()
	li.o.next = li.merge
	for i := range li.pages {
		if li.pages[i].more = true; cursor.Kind == mpack.Int {
			li.pages[i].cursor = uint64(cursor.Int)
		}
		li.ask(i)
	}
	return true
}

// optional reports whether a field is absent, or an integer from least on.
func optional(v *mpack.Value, least int64) bool {
	return v.Kind == mpack.Absent || v.Kind == mpack.Nil || v.Kind == mpack.Int && v.Int >= least
}

// ask asks a partition for its next page.
func (li *listing) ask(partition int) {
	rows := int64(max(min(pageRows/len(li.pages), li.o.s.r.cfg.MaxFrameBytes/rowBytes), 1))
	if li.limit > 0 {
		rows = min(rows, li.limit-li.count)
	}
	li.o.parts[partition] = part{}
	body := append(mpack.AppendMap(nil, li.pairs+3), li.filter...)
	body = mpack.AppendUint(mpack.AppendStr(body, "cursor"), li.pages[partition].cursor)
	body = mpack.AppendInt(mpack.AppendStr(body, "limit"), rows)
	li.o.ask(partition, mpack.AppendBool(mpack.AppendStr(body, "created"), true))
}

// merge takes the pages that came, then rows until one of the pages is used up.
func (li *listing) merge() {
	if i, refused := li.o.refusal(); refused {
		li.o.relay(i)
		return
	}
	for i := range li.pages {
		p := &li.pages[i]
		if p.row != nil || !p.more {
			continue
		}
		if !p.open(li.o.body(i)) {
			li.o.s.fail(i, errLeg)
			return
		}
	}
	for {
		at, missing := li.least()
		switch {
		case missing && (li.limit == 0 || li.count < li.limit):
			return
		case at < 0 && !missing || li.limit > 0 && li.count == li.limit:
			li.end(at >= 0 || missing)
			return
		}
		p := &li.pages[at]
		li.take(p.row)
		li.last = p.key
		p.advance()
	}
}

// least returns the page with the oldest row, -1 if none has one. Pages that are used up and not
// the last of their partition are asked for, and missing, unless the limit is reached.
func (li *listing) least() (at int, missing bool) {
	at = -1
	for i := range li.pages {
		switch p := &li.pages[i]; {
		case p.row == nil && p.more:
			if missing = true; li.limit == 0 || li.count < li.limit {
				li.ask(i)
			}
		case p.row != nil && (at < 0 || p.key < li.pages[at].key):
			at = i
		}
	}
	return at, missing
}

// take adds a row. Past the frame bound only the size is kept up, for the refusal to name.
func (li *listing) take(row []byte) {
	li.count++
	li.size += len(row)
	if li.rows = append(li.rows, row...); li.size > li.o.s.r.cfg.MaxFrameBytes {
		li.rows = li.rows[:0]
	}
}

// end answers the request.
func (li *listing) end(more bool) {
	more = more && li.limit > 0
	keys := 1
	if more {
		keys = 2
	}
	body := mpack.AppendStr(mpack.AppendMap([]byte(okRest), keys), "processes")
	body = mpack.AppendArray(body, int(li.count))
	body = append(body, li.rows...)
	missing := li.size - len(li.rows)
	if more {
		body = mpack.AppendUint(mpack.AppendStr(body, "next_cursor"), li.last)
	}
	o := li.o
	o.end(o.s.appendSized(nil, frame.Response, o.id, body, missing))
}

// open takes a page from the body of a reply; false: it is none.
func (p *page) open(body []byte) bool {
	rows, keys, cursor := member(body, "processes"), member(body, "created"), member(body, "next_cursor")
	p.rows, p.keys = mpack.OpenList(rows.Data), mpack.OpenList(keys.Data)
	p.more = cursor.Kind == mpack.Int
	if rows.Kind != mpack.Array || keys.Kind != mpack.Array || p.rows.Len() != p.keys.Len() ||
		p.more && (p.rows.Len() == 0 || uint64(cursor.Int) <= p.cursor) {
		return false // a page that does not move on would be asked for without end
	}
	if p.more {
		p.cursor = uint64(cursor.Int)
	}
	p.advance()
	return true
}

// advance makes the next row the first one.
func (p *page) advance() {
	p.row, _ = p.rows.Next()
	raw, _ := p.keys.Next()
	if p.key = math.MaxUint64; p.row != nil {
		p.key = uint64(mpack.ReadValue(raw).Int)
	}
}
