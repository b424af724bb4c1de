package workspace

import (
	"strconv"
	"strings"

	"trunkline/codec/jsonx"
)

// encode returns manifest.json (exacta §4.18). seq and conflicts are beside what the contract
// names: seq orders points that were made at one time, and a point with conflicts is kept.
func (pt *Point) encode() []byte {
	entries := []byte{'['}
	for _, e := range pt.Entries {
		b := jsonx.Build(jsonx.AppendComma(entries)).Text("path", e.Path).Text("op", string(e.Op)).
			Int("mode", int64(e.Mode))
		b = orNull(b, "pre_sha256", e.Pre)
		b = orNull(b, "post_sha256", e.Post)
		b = orNull(b, "blob", e.Blob)
		entries = b.Texts("created_dirs", e.CreatedDirs).Int("order", int64(e.Order)).End()
	}
	b := jsonx.Build(nil).Int("schema_version", 1).Text("id", pt.ID).Text("kind", pt.Kind).
		Text("created_at", pt.CreatedAt).Bool("sealed", pt.Sealed).Raw("entries", append(entries, ']')).
		Int("seq", pt.seq).Int("conflicts", int64(pt.Conflicts))
	return append(b.End(), '\n')
}

// parseManifest returns the point of a manifest, or what is wrong with it.
func parseManifest(p *Project, id string, text []byte) (*Point, string) {
	r := reader{}
	top, problem := document(&r, text)
	if problem != "" {
		return nil, problem
	}
	pt := &Point{
		ID: top.text("id"), Kind: top.choice("kind", "", PlanPoint, DiffSetPoint), CreatedAt: top.text("created_at"),
		Conflicts: top.integer("conflicts", 0, 1<<30, 0), seq: int64(top.integer("seq", 0, maxSeq, 0)), p: p,
	}
	switch top.get("sealed").Kind {
	case jsonx.True:
		pt.Sealed = true
	case jsonx.False:
	default:
		r.bad("sealed")
	}
	list := top.get("entries")
	if list.Kind != jsonx.ArrayStart {
		r.bad("entries")
	}
	it := jsonx.OpenArray(list.Raw)
	for v, ok := it.Next(); ok; v, ok = it.Next() {
		e := parseEntry(section{&r, "entries.", v.Raw})
		if n := len(pt.Entries); n > 0 && e.Order <= pt.Entries[n-1].Order {
			r.bad("entries.order")
		}
		pt.Entries = append(pt.Entries, e)
	}
	if pt.ID != id || pt.Kind == "" {
		r.bad("id")
	}
	return pt, r.setting
}

// leastOrder is the least order of an entry. They ascend from any base (exacta §4.18).
const leastOrder = -1 << 30

func parseEntry(s section) Entry {
	e := Entry{
		Path: s.text("path"), Op: Op(s.choice("op", "", string(Create), string(Modify), string(Delete))),
		Mode: s.integer("mode", 0, 0o7777, 0), Pre: s.sum("pre_sha256"), Post: s.sum("post_sha256"),
		Blob: s.textOrNull("blob"), CreatedDirs: s.texts("created_dirs"), Order: s.integer("order", leastOrder, 1<<30, leastOrder-1),
	}
	if e.Order < leastOrder {
		s.r.bad("entries.order")
	}
	if checkPath(e.Path) != nil {
		s.r.bad("entries.path")
	}
	for _, d := range e.CreatedDirs {
		if checkPath(d) != nil || !strings.HasPrefix(e.Path, d+"/") {
			s.r.bad("entries.created_dirs")
		}
	}
	n, isBlob := strings.CutSuffix(e.Blob, ".bin")
	if _, err := strconv.ParseUint(n, 10, 31); e.Blob != "" && (!isBlob || err != nil) {
		s.r.bad("entries.blob")
	}
	fits := false
	switch e.Op {
	case Create:
		fits = e.Pre == "" && e.Post != "" && e.Blob == ""
	case Modify:
		fits = e.Pre != "" && e.Post != "" && e.Blob != ""
	case Delete:
		fits = e.Pre != "" && e.Post == "" && e.Blob != ""
	}
	if !fits {
		s.r.bad("entries.op")
	}
	return e
}

// sum reads a SHA-256, "" for null.
func (s section) sum(name string) string {
	text := s.textOrNull(name)
	if text != "" && (len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "") {
		s.r.bad(s.prefix + name)
	}
	return text
}
