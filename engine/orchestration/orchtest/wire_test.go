package orchtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// obj and arr are the maps and lists of the tests' values; the scalars are nil, bool, int, int64,
// uint64, float64 and string. rawMsg is MessagePack that is put in as it is.
type (
	obj    = map[string]any
	arr    = []any
	rawMsg []byte
)

// pack appends v as MessagePack in the smallest classes, map keys in order.
func pack(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 0xc0)
	case bool:
		if v {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case int:
		return packInt(b, int64(v))
	case int64:
		return packInt(b, v)
	case uint64:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
	case string:
		return packText(b, v)
	case rawMsg:
		return append(b, v...)
	case arr:
		b = packHead(b, 0x90, 0xdc, len(v))
		for _, e := range v {
			b = pack(b, e)
		}
		return b
	case obj:
		b = packHead(b, 0x80, 0xde, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = pack(packText(b, k), v[k])
		}
		return b
	}
	panic(fmt.Sprintf("cannot pack a %T", v))
}

func packHead(b []byte, fix, wide byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, fix|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, wide), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, wide+1), uint32(n))
}

func packText(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func packInt(b []byte, n int64) []byte {
	switch {
	case n >= 0 && n < 1<<7, n < 0 && n >= -32:
		return append(b, byte(n))
	case n >= 0 && n < 1<<8:
		return append(b, 0xcc, byte(n))
	case n >= 0 && n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n >= 0 && n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

// item is the head of one encoded value: a scalar, or the count of a container's members.
type item struct {
	v     any // nil, bool, int64, uint64, float64; text keeps its bytes in text
	text  []byte
	n     int
	class byte // 's' text, 'm' map, 'a' list, 0 any other scalar
}

// take reads one head off b. It panics on cut or unknown bytes: the tests read only what the engine
// wrote.
func take(b []byte) (it item, rest []byte) {
	c := b[0]
	b = b[1:]
	switch {
	case c <= 0x7f || c >= 0xe0:
		return item{v: int64(int8(c))}, b
	case c <= 0x8f:
		return item{class: 'm', n: int(c & 15)}, b
	case c <= 0x9f:
		return item{class: 'a', n: int(c & 15)}, b
	case c <= 0xbf:
		n := int(c & 31)
		return item{class: 's', text: b[:n]}, b[n:]
	case c == 0xc0:
		return item{}, b
	case c == 0xc2 || c == 0xc3:
		return item{v: c == 0xc3}, b
	}
	size := 1 << ((c - 0xcc) & 3)
	switch c {
	case 0xca:
		return item{v: float64(math.Float32frombits(binary.BigEndian.Uint32(b)))}, b[4:]
	case 0xcb:
		return item{v: math.Float64frombits(binary.BigEndian.Uint64(b))}, b[8:]
	case 0xcc, 0xcd, 0xce, 0xcf:
		if n := bigEndian(b[:size]); n <= math.MaxInt64 {
			return item{v: int64(n)}, b[size:]
		} else {
			return item{v: n}, b[size:]
		}
	case 0xd0, 0xd1, 0xd2, 0xd3:
		shift := 64 - 8*size
		return item{v: int64(bigEndian(b[:size])) << shift >> shift}, b[size:]
	case 0xd9, 0xda, 0xdb:
		size = 1 << (c - 0xd9)
		n := int(bigEndian(b[:size]))
		return item{class: 's', text: b[size : size+n]}, b[size+n:]
	case 0xdc, 0xdd, 0xde, 0xdf:
		size = 2 << (c & 1)
		class := byte('a')
		if c >= 0xde {
			class = 'm'
		}
		return item{class: class, n: int(bigEndian(b[:size]))}, b[size:]
	}
	panic(fmt.Sprintf("byte 0x%02x starts no value of a reply", c))
}

func bigEndian(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// unpack reads one value and returns what is behind it.
func unpack(b []byte) (v any, rest []byte) {
	it, b := take(b)
	switch it.class {
	case 's':
		return string(it.text), b
	case 'a':
		list := make(arr, it.n)
		for i := range list {
			list[i], b = unpack(b)
		}
		return list, b
	case 'm':
		m := make(obj, it.n)
		for range it.n {
			var key item
			key, b = take(b)
			if _, twice := m[string(key.text)]; twice || key.class != 's' {
				panic(fmt.Sprintf("a reply's map has the key %q twice, or it is no text", key.text))
			}
			m[string(key.text)], b = unpack(b)
		}
		return m, b
	}
	return it.v, b
}

// lastOf reads a member of nested maps as a reader does to whom the last of repeated keys counts.
func lastOf(b []byte, path ...string) (v any, found bool) {
	if len(path) == 0 {
		v, _ = unpack(b)
		return v, true
	}
	it, b := take(b)
	for range it.n {
		var key item
		key, b = take(b)
		if it.class == 'm' && string(key.text) == path[0] {
			v, found = lastOf(b, path[1:]...)
		}
		b = skip(b)
	}
	return v, found
}

func skip(b []byte) []byte {
	it, b := take(b)
	for range it.n {
		if it.class == 'm' {
			b = skip(b)
		}
		b = skip(b)
	}
	return b
}

// jsonText writes v as JSON text. A float keeps its point, so that it stays a float for the one
// that reads it.
func jsonText(v any) string {
	switch v := v.(type) {
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	case arr:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = jsonText(e)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case obj:
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, jsonText(k)+":"+jsonText(v[k]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// fromJSON reads the JSON of an example; integers become ints.
func fromJSON(s string) obj {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err.Error() + " in " + s)
	}
	return numbers(v).(obj)
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case arr:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case obj:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// clone copies v to any depth.
func clone(v any) any {
	switch v := v.(type) {
	case arr:
		c := make(arr, len(v))
		for i := range v {
			c[i] = clone(v[i])
		}
		return c
	case obj:
		c := make(obj, len(v))
		for k := range v {
			c[k] = clone(v[k])
		}
		return c
	}
	return v
}
