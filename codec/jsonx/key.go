package jsonx

import (
	"bytes"
	"cmp"
	"math/bits"
)

// key is the name of a member. Its head decides nearly every comparison.
type key struct {
	head  uint64 // the first eight bytes of its meaning, little-endian, zeros behind the end
	at    int    // where its contents begin in the text
	plain int    // where its meaning begins in keyring.plain; -1 if the contents are the meaning
	size  int    // of its meaning
}

// keyring knows the meaning of the keys of one text.
type keyring struct {
	text  []byte
	plain []byte // the meanings of the keys that have escapes; never longer than text
}

// start begins a text.
func (r *keyring) start(text []byte) { r.text, r.plain = text, r.plain[:0] }

// set makes k the key whose contents are text[from:to].
func (r *keyring) set(k *key, from, to int, escaped bool) {
	if escaped {
		r.setEscaped(k, from, to)
		return
	}
	k.head, k.at, k.plain, k.size = headOf(r.text, from, to), from, -1, to-from
}

func (r *keyring) setEscaped(k *key, from, to int) {
	plain := len(r.plain)
	r.plain = AppendUnescaped(r.plain, r.text[from:to])
	size := len(r.plain) - plain
	k.head, k.at, k.plain, k.size = headOf(r.plain, plain, plain+size), from, plain, size
}

// meaning returns the bytes of a key without escapes.
func (r *keyring) meaning(k *key) []byte {
	if k.plain >= 0 {
		return r.plain[k.plain : k.plain+k.size]
	}
	return r.text[k.at : k.at+k.size]
}

// same reports whether two keys have one meaning.
func (r *keyring) same(a, b *key) bool {
	return a.head == b.head && a.size == b.size && (a.size <= 8 || bytes.Equal(r.meaning(a), r.meaning(b)))
}

// compare orders keys by the bytes of their meaning, and repeated ones by their place.
func (r *keyring) compare(a, b *key) int {
	if a.head != b.head {
		return cmp.Compare(bits.ReverseBytes64(a.head), bits.ReverseBytes64(b.head))
	}
	if c := bytes.Compare(r.meaning(a), r.meaning(b)); c != 0 {
		return c
	}
	return cmp.Compare(a.at, b.at)
}
