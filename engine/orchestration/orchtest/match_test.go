package orchtest

import (
	"fmt"
	"maps"
	"slices"
)

// Expectations that are no plain values.
type (
	// orAbsent is a member that is there with this value, or nil, or not at all when the value is
	// nil.
	orAbsent struct{ v any }
	// emptied is a map that became empty: it may be there or not.
	emptied struct{}
	// nameSet is a set of stage names; loose accepts both of its forms, a map to true and a list.
	nameSet struct {
		names map[string]bool // true: in the set; false: an entry that may have vanished
		list  bool            // its form: list or map
		loose bool
	}
	// holds is a value a function accepts.
	holds struct {
		what string
		ok   func(v any) bool
	}
)

// match reads one value off b and states how it differs from want; "" if it does not.
func match(b []byte, want any) (rest []byte, diff string) {
	switch w := want.(type) {
	case obj:
		return matchMap(b, w)
	case arr:
		return matchList(b, w)
	case nameSet, holds, orAbsent, emptied:
		v, rest := unpack(b)
		return rest, matchSpecial(v, want)
	case string:
		it, rest := take(b)
		if it.class == 's' && string(it.text) == w {
			return rest, ""
		}
	case int:
		it, rest := take(b)
		if n, ok := it.v.(int64); ok && n == int64(w) {
			return rest, ""
		}
	default:
		it, rest := take(b)
		if it.class == 0 && it.v == want {
			return rest, ""
		}
	}
	got, rest := unpack(b)
	return rest, fmt.Sprintf(": got %s, want %s", show(got), show(want))
}

func matchMap(b []byte, want obj) (rest []byte, diff string) {
	it, rest := take(b)
	if it.class != 'm' {
		got, rest := unpack(b)
		return rest, fmt.Sprintf(": got %s, want a map", show(got))
	}
	matched := 0
	for range it.n {
		var key item
		key, rest = take(rest)
		w, ok := want[string(key.text)]
		if !ok {
			got, _ := unpack(rest)
			return rest, fmt.Sprintf(".%s: got %s, want no such key", key.text, show(got))
		}
		if rest, diff = match(rest, w); diff != "" {
			return rest, "." + string(key.text) + diff
		}
		matched++
	}
	if matched != len(want) {
		got, _ := unpack(b)
		diff = lacking(got.(obj), want)
	}
	return rest, diff
}

// lacking names the keys of want that got does not have; unpack has already refused repeated ones.
func lacking(got, want obj) string {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		_, there := got[k]
		o, optional := want[k].(orAbsent)
		_, empty := want[k].(emptied)
		if !there && !empty && (!optional || o.v != nil) {
			return fmt.Sprintf(".%s: missing, want %s", k, show(want[k]))
		}
	}
	return ""
}

func matchList(b []byte, want arr) (rest []byte, diff string) {
	it, rest := take(b)
	if it.class != 'a' || it.n != len(want) {
		got, rest := unpack(b)
		return rest, fmt.Sprintf(": got %s, want %s", show(got), show(want))
	}
	for i := range want {
		if rest, diff = match(rest, want[i]); diff != "" {
			return rest, fmt.Sprintf("[%d]%s", i, diff)
		}
	}
	return rest, ""
}

func matchSpecial(v, want any) string {
	switch w := want.(type) {
	case orAbsent:
		if v == nil {
			if w.v == nil {
				return ""
			}
		} else if _, diff := match(pack(nil, v), w.v); diff == "" {
			return ""
		}
	case emptied:
		if m, ok := v.(obj); v == nil || ok && len(m) == 0 {
			return ""
		}
	case holds:
		if w.ok(v) {
			return ""
		}
	case nameSet:
		return matchSet(v, w)
	}
	return fmt.Sprintf(": got %s, want %s", show(v), show(want))
}

func matchSet(v any, want nameSet) string {
	got := map[string]bool{}
	switch v := v.(type) {
	case arr:
		for _, name := range v {
			got[name.(string)] = true
		}
		if len(got) != len(v) || !want.list && !want.loose {
			return fmt.Sprintf(": got the list %s, want %s", show(v), show(want))
		}
	case obj:
		for name, in := range v {
			got[name] = in == true
		}
		if want.list && !want.loose {
			return fmt.Sprintf(": got the map %s, want %s", show(v), show(want))
		}
	}
	for _, names := range []map[string]bool{got, want.names} {
		for name := range names {
			if got[name] != want.names[name] {
				return fmt.Sprintf(": got %s, want %s", show(v), show(want))
			}
		}
	}
	return ""
}

// show prints a value for people.
func show(v any) string {
	switch v := v.(type) {
	case orAbsent:
		return show(v.v) + " or nothing"
	case emptied:
		return "{} or nothing"
	case holds:
		return v.what
	case nameSet:
		return fmt.Sprintf("the set %v (list %v)", v.names, v.list)
	case arr:
		s := "["
		for i, e := range v {
			if i > 0 {
				s += ","
			}
			s += show(e)
		}
		return s + "]"
	case obj:
		s := "{"
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				s += ","
			}
			s += fmt.Sprintf("%q:%s", k, show(v[k]))
		}
		return s + "}"
	case string:
		return fmt.Sprintf("%q", v)
	case float64:
		return jsonText(v)
	}
	return fmt.Sprint(v)
}
