package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestPagesOfAllCommands: each command that is not hidden has a page of either form, with its
// flags.
func TestPagesOfAllCommands(t *testing.T) {
	dir := t.TempDir()
	wantRun(t, runMain("man", filepath.Join(dir, "man")), 0, "", "")
	wantRun(t, runMain("man", filepath.Join(dir, "md"), "--format", "markdown"), 0, "", "")
	wantRun(t, runMain("man", dir, "--format", "html"), 2, "", "want man or markdown")
	wantRun(t, runMain("man", filepath.Join(dir, "man", "trunkline.1")), 1, "", "not a directory")
	page := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		if cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		path := cmd.CommandPath()
		if text := page("man/" + strings.ReplaceAll(path, " ", "-") + ".1"); !strings.Contains(text, ".SH SYNOPSIS") || !strings.Contains(text, `.TH "TRUNKLINE`) {
			t.Errorf("man page of %s: %.200s", path, text)
		}
		if text := page("md/" + strings.ReplaceAll(path, " ", "_") + ".md"); !strings.Contains(text, "## "+path+"\n") {
			t.Errorf("page of %s: %.200s", path, text)
		}
	})
	if text := page("man/trunkline-tool_exec.1"); !strings.Contains(text, "trunkline --run <plugin> <aid> ") || !strings.Contains(text, "\n<plugin> is builtin, ") {
		t.Errorf("page of tool_exec: %s", text)
	}
	if text := page("md/trunkline_call.md"); !strings.Contains(text, "--addr string") || strings.Contains(text, "Auto generated") {
		t.Errorf("page of call: %s", text)
	}
}
