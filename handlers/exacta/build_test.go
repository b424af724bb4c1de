package exacta

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/handlers/exacta/workspace"
)

// TestBuildOfADirectory: what a tool is to build lies where it runs (exacta §4.13).
func TestBuildOfADirectory(t *testing.T) {
	dir := newRoot(t)
	for name, text := range map[string]string{"package.json": `{"scripts":{"build":"x"}}`, "web/package.json": `{"scripts":{"start":"x"}}`, "web/a/b": "",
		"net/x/One.csproj": "", "net/y/One.csproj": "", "net/y/Two.csproj": "", "net/y/All.sln": "", "net/Other.txt": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws, f := workspace.Open(dir, workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	for _, c := range [][3]string{{"npm", "", "npm run build"}, {"npm", "net", "npm run build"}, {"npm", "web", "CFG-002"}, {"npm", "web/a", "CFG-002"},
		{"dotnet", "net/x", "dotnet build One.csproj -c Debug --nologo"}, {"dotnet", "net/y", "dotnet build All.sln -c Debug --nologo"}, {"dotnet", "", "CFG-002"}} {
		words, f := command(ws, c[0], c[1], "Debug")
		got := strings.Join(words, " ")
		if f != nil {
			got = f.Code
		}
		if got != c[2] {
			t.Errorf("%s in %q: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	if words := start(ws, "npm", "web/a"); strings.Join(words, " ") != "npm start" {
		t.Errorf("%q", words)
	}
}
