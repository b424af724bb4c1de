package workspace

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOrderOfCalls holds the order that exacta §4.8, §4.12 and §4.17 demand: the way back is
// durable before the first change, all temporary files are before the first rename, and each change
// is durable before the next. A dot is the directory of what was changed.
func TestOrderOfCalls(t *testing.T) {
	root, _ := scene(t)
	var log []string
	p := open(t, root, Options{Before: func(op, name string) error {
		log = append(log, op+" "+strings.ReplaceAll(name, id1, "ID"))
		return nil
	}})
	step := func(want string, f func()) {
		t.Helper()
		log = nil
		f()
		if err := exchange(p.dir, "m.txt", "none"); err == unix.EINVAL || err == unix.ENOSYS { // a file system that cannot
			want = strings.ReplaceAll(want, "open m.txt.tmp.ID\nunlink m.txt.tmp.ID\n", "")
		}
		if got := strings.Join(log, "\n"); got != strings.TrimSpace(want) {
			t.Errorf("%s\n\nwant\n%s", got, want)
		}
	}
	pt, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	const manifest = `
create manifest.json.tmp
write manifest.json.tmp
fsync manifest.json.tmp
readback manifest.json.tmp
rename manifest.json
fsync .
`
	step(`open m.txt
open m.txt
create 1.bin
write 1.bin
chmod 1.bin
fsync 1.bin
readback 1.bin
open x.txt
open x.txt
create 3.bin
write 3.bin
chmod 3.bin
fsync 3.bin
readback 3.bin
fsync .`+manifest, func() { ok(t, pt.Add(changes()...)) })
	step(`
open m.txt
open m.txt
create m.txt.tmp.ID
write m.txt.tmp.ID
chmod m.txt.tmp.ID
fsync m.txt.tmp.ID
readback m.txt.tmp.ID
mkdir n
fsync .
mkdir e
fsync .
create w.txt.tmp.ID
write w.txt.tmp.ID
fsync w.txt.tmp.ID
readback w.txt.tmp.ID
open x.txt
`, func() { ok(t, pt.Prepare()) })
	step(`
open m.txt
rename m.txt
open m.txt.tmp.ID
unlink m.txt.tmp.ID
fsync .
rename w.txt
fsync .
open x.txt
unlink x.txt
fsync .
`, func() { ok(t, pt.Commit(nil)) })
	step(manifest, func() { ok(t, pt.Seal()) })
	step(`
open 3.bin
open 3.bin
create x.txt.tmp.ID
write x.txt.tmp.ID
chmod x.txt.tmp.ID
fsync x.txt.tmp.ID
readback x.txt.tmp.ID
rename x.txt
fsync .
open w.txt
unlink w.txt
fsync .
rmdir e
fsync .
rmdir n
fsync .
open m.txt
open 1.bin
open 1.bin
create m.txt.tmp.ID
write m.txt.tmp.ID
chmod m.txt.tmp.ID
fsync m.txt.tmp.ID
readback m.txt.tmp.ID
open m.txt
rename m.txt
open m.txt.tmp.ID
unlink m.txt.tmp.ID
fsync .
`+strings.TrimPrefix(manifest, "\n"), func() { ok(t, pt.Undo(0)) })
}
