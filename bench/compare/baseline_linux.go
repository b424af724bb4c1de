package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"trunkline/bench/internal/gobench"
)

// revisionLine is the line of the baseline's file that names its revision.
var revisionLine = regexp.MustCompile(`(?m)^revision: ([0-9a-f]{40})$`)

// setBaseline writes the revision of the working directory to the file. Changes that it does not
// have are an error, apart from the folder of the file: measured figures are no source.
func (c *comparison) setBaseline() error {
	c.JSON = ""
	changed, err := gobench.Output(".", "git", "status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude)"+filepath.Dir(baseline))
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("cannot set a baseline: a revision has to name its sources, and these are not committed:\n%s", changed)
	}
	revision, err := gobench.Output(".", "git", "log", "-1", "--format=revision: %H%ndate: %cs")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(baseline), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the baseline: %w", err)
	}
	if err := os.WriteFile(baseline, []byte(revision+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write the baseline: %w", err)
	}
	c.Report.Note("%s names this baseline:\n%s", baseline, revision)
	return nil
}

// sources unpacks the working directory as it was in the baseline and returns where. It is empty,
// and noted, where there is no baseline, or its revision is not there, as in a tarball or a shallow
// clone.
func (c *comparison) sources() (root string, err error) {
	text, err := os.ReadFile(baseline)
	if errors.Is(err, fs.ErrNotExist) {
		c.Report.Note("NOT COMPARED: there is no baseline %s; -update (make bench-baseline) sets one.", baseline)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the baseline: %w", err)
	}
	m := revisionLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("cannot take the baseline %s: it names no revision", baseline)
	}
	revision := string(m[1])
	if _, err := gobench.Output(".", "git", "cat-file", "-e", revision+"^{commit}"); err != nil {
		c.Report.Note("NOT COMPARED: there is no revision %s here.", revision)
		return "", nil
	}
	root = filepath.Join(c.Rig.Dir, "sources")
	packed := root + ".tar"
	if err := os.Mkdir(root, 0o755); err != nil {
		return "", fmt.Errorf("cannot unpack the baseline: %w", err)
	}
	if _, err := gobench.Output(".", "git", "archive", "--output="+packed, revision); err != nil {
		return "", err
	}
	c.Report.Note("The baseline is revision %s.", revision)
	_, err = gobench.Output(".", "tar", "-x", "-C", root, "-f", packed)
	return root, err
}
