package sessionstate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"testing"
)

func TestDigest(t *testing.T) {
	f := func(raw, sha, fast string) {
		t.Helper()
		var s State
		next, why := s.Apply([]byte(raw))
		gotSHA, gotFast := next.Digest()
		if why != "" || string(gotSHA[:]) != sha || string(gotFast[:]) != fast {
			t.Errorf("%s: %s %s %q, want %s %s", raw, gotSHA, gotFast, why, sha, fast)
		}
	}
	f(`{}`, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "14650fb0739d0383") // toolhost §3.6
	f(`{"slots":{"6":{"type":"text","provenance":"test_plugin","content_json":"{\"echo\":{\"x\":1}}","size_bytes":16}}}`,
		"d48bf0e2ff4d4de091d479f5a310d29e8560c7744c7a1695d86c0edb23d2baab", "6b32d1d3e296fab8") // toolhost §9A
}

// TestDigestText spells out the text that is digested, colons and bars in the members included.
func TestDigestText(t *testing.T) {
	var s State
	s.Set(7, Artifact{Type: "z", Content: "{}", Size: maxSize})
	s.Set(0, Artifact{"a:b", "c|d", "", 0})
	h := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	text := "0:a:b:c|d:0:" + h("") + "|7:z::9007199254740991:" + h("{}") + "|"
	fast := uint64(1469598103934665603)
	for _, c := range []byte(text) {
		fast ^= uint64(c)
		fast *= 1099511628211
	}
	gotSHA, gotFast := s.Digest()
	if string(gotSHA[:]) != h(text) || string(gotFast[:]) != fmt.Sprintf("%016x", fast) {
		t.Errorf("digests %s %s, want %s %016x", gotSHA, gotFast, h(text), fast)
	}
	standard := fnv.New64a()
	standard.Write([]byte(text))
	if fmt.Sprintf("%016x", standard.Sum64()) == string(gotFast[:]) {
		t.Error("the fast digest uses the standard offset basis")
	}
}

func TestDigestSeesEveryMember(t *testing.T) {
	base := Artifact{"t", "p", "c", 1}
	seen := make(map[[64]byte]string)
	add := func(what string, n int, a Artifact) {
		t.Helper()
		var s State
		s.Set(n, a)
		sha, _ := s.Digest()
		if other, ok := seen[sha]; ok {
			t.Errorf("%s and %s have one digest", what, other)
		}
		seen[sha] = what
	}
	add("base", 1, base)
	add("slot", 2, base)
	add("type", 1, Artifact{"T", "p", "c", 1})
	add("provenance", 1, Artifact{"t", "P", "c", 1})
	add("content", 1, Artifact{"t", "p", "C", 1})
	add("size", 1, Artifact{"t", "p", "c", 2})
}
