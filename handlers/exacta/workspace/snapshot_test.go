package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// snapshot returns all names below root with their kind, mode and bytes, without .exacta.
func snapshot(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case rel == storeName:
			return fs.SkipDir
		case e.IsDir():
			fmt.Fprintf(&b, "%s/|", rel)
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			st, err := e.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %04o %s|", rel, st.Mode().Perm(), text)
		default:
			fmt.Fprintf(&b, "%s %s|", rel, e.Type())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
