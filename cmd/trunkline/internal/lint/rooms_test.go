package lint

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of rooms into "+roomsPage)

// roomsPage is the page with the table of rooms, between the two markers of roomsPart.
const roomsPage = "ARCHITECTURE.md"

var roomsPart = regexp.MustCompile(`(?s)(<!-- rooms -->\n).*(<!-- /rooms -->)`)

//go:generate go test -run ^TestRoomTable$ . -update

// TestRoomTable compares the table in the page with directions and keepers.
func TestRoomTable(t *testing.T) {
	r := repository(t)
	want := roomsPart.ReplaceAllString(r.texts[roomsPage], "${1}"+roomTable()+"${2}")
	switch {
	case !roomsPart.MatchString(want):
		t.Fatalf("%s has no part <!-- rooms -->", roomsPage)
	case want == r.texts[roomsPage]:
	case *update:
		if err := os.WriteFile(filepath.Join(r.root, roomsPage), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the table of rooms is not that of the rules: run make generate", roomsPage)
	}
}

// roomTable returns the table of directions, and the libraries of keepers with their rooms.
func roomTable() string {
	var b strings.Builder
	b.WriteString("| packages under | import, besides their own room | because |\n|---|---|---|\n")
	for _, d := range directions {
		may := "nothing"
		if len(d.may) > 0 {
			may = strings.Join(d.may, ", ")
		}
		b.WriteString("| " + strings.Join(d.rooms, ", ") + " | " + may + " | " + d.why + " |\n")
	}
	b.WriteString("\nLibraries that only some rooms import:\n")
	for _, k := range keepers {
		if strings.Contains(k.pkg, ".") {
			b.WriteString("- " + k.pkg[strings.LastIndex(k.pkg, "/")+1:] + ": " + strings.Join(k.rooms, ", ") + "\n")
		}
	}
	return b.String()
}

// roomsPageBytes bounds the page: it is read as a whole before a first change.
const roomsPageBytes = 18 << 10

// Names in the page: a path of a file or a room, and the declarations that it names in that file.
var (
	pagePath  = regexp.MustCompile("`((?:codec|engine|handlers|cmd|fuzz|bench|docs)/[^`]+)`")
	namesFile = regexp.MustCompile("`([^` ]+\\.go)` ((?:(?:, | and )?`[A-Za-z]+`)+)")
	fileNames = regexp.MustCompile("((?:(?:, | and )?`[A-Za-z]+`)+) in `([^` ]+\\.go)`")
	quoted    = regexp.MustCompile("`([A-Za-z]+)`")
)

// TestPageNames checks that the page is short, and that its files and names exist.
func TestPageNames(t *testing.T) {
	r := repository(t)
	page := r.texts[roomsPage]
	if len(page) > roomsPageBytes {
		t.Errorf("%s has %d bytes, at most %d", roomsPage, len(page), roomsPageBytes)
	}
	for _, m := range pagePath.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(r.root, m[1])); err != nil {
			t.Errorf("%s names %s, which is not there", roomsPage, m[1])
		}
	}
	flat := strings.ReplaceAll(page, "\n", " ")
	check := func(file, names string) {
		for _, m := range quoted.FindAllStringSubmatch(names, -1) {
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(r.texts[file]) {
				t.Errorf("%s names %s in %s, which has no such name", roomsPage, m[1], file)
			}
		}
	}
	for _, m := range namesFile.FindAllStringSubmatch(flat, -1) {
		check(m[1], m[2])
	}
	for _, m := range fileNames.FindAllStringSubmatch(flat, -1) {
		check(m[2], m[1])
	}
}

// TestDirectionsAreUsed fails for a permission that no file needs.
func TestDirectionsAreUsed(t *testing.T) {
	used := make(map[string]bool)
	for _, f := range repository(t).files {
		d, ok := directionOf(f.dir)
		if !ok || f.test {
			continue
		}
		for _, room := range d.rooms {
			used[room] = used[room] || under(f.dir, room)
		}
		for _, imp := range imports(f) {
			for _, may := range d.may {
				use := d.rooms[0] + " imports " + may
				used[use] = used[use] || under(strings.TrimPrefix(imp, ours), may)
			}
		}
	}
	for _, d := range directions {
		for _, room := range d.rooms {
			if !used[room] {
				t.Errorf("room %s has no file: take it out of directions", room)
			}
		}
		for _, may := range d.may {
			if !used[d.rooms[0]+" imports "+may] {
				t.Errorf("%v may import %s and do not: delete the permission", d.rooms, may)
			}
		}
	}
}
