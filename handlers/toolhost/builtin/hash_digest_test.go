package builtin

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func TestHashDigest(t *testing.T) {
	b := newBench(t)
	large := strings.Repeat("0123456789abcdef", 20_000)
	b.write("base/large", large)
	f := func(input, algo, hex string, n int) {
		t.Helper()
		b.want("AID.HASH.DIGEST.v1", input, fmt.Sprintf(`{"ok":true,"algo":"%s","hex":"%s","bytes":%d}`, algo, hex, n))
	}
	const sha = "sha256"
	f(`{"text":""}`, sha, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0)
	f(`{"text":"abc"}`, sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3)
	f(`{"text":"\u00f6\u0000"}`, sha, fmt.Sprintf("%x", sha256.Sum256([]byte("ö\x00"))), 3)
	f(`{"text":"abc","algo":7}`, sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3)
	f(`{"text":"abc","path":"a.txt"}`, sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3)
	f(`{"text":1,"path":"a.txt"}`, sha, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", 5)
	f(`{"path":"large"}`, sha, fmt.Sprintf("%x", sha256.Sum256([]byte(large))), len(large))
	f(`{"text":"","algo":"fnv1a64"}`, "fnv1a64", "cbf29ce484222325", 0)
	f(`{"text":"foobar","algo":"fnv1a64"}`, "fnv1a64", "85944171f73967e8", 6)
	f(`{"path":"a.txt","algo":"fnv1a64"}`, "fnv1a64", "a430d84680aabd0b", 5)
}

func TestHashDigestFailures(t *testing.T) {
	b := newBench(t)
	f := func(input, text string) { t.Helper(); b.wantFail("AID.HASH.DIGEST.v1", input, text) }
	f(`{}`, "missing text/path")
	f(`{"path":""}`, "missing text/path")
	f(`{"text":1,"path":null,"algo":"md5"}`, "missing text/path")
	f(`{"text":"x","algo":"md5"}`, "unknown algo")
	f(`{"text":"x","algo":""}`, "unknown algo")
	f(`{"path":"nope","algo":"SHA256"}`, "unknown algo")
	f(`{"path":"nope"}`, "cannot open file: nope")
	f(`{"path":"sub"}`, "read error: sub")
	f(`{"path":"../x"}`, "read path not allowed (outside MACHINA_ROOT): ../x")
}
