package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// output runs a command and returns what it printed, without space around it. An error has what the
// command complained.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		said := out
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			said = append(said, exit.Stderr...)
		}
		return "", fmt.Errorf("cannot run %s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, said)
	}
	return strings.TrimSpace(string(out)), nil
}

// committed returns the revision of the working directory, and an error if there are changes that
// it does not have. The folder except does not count: measured figures are no source.
func committed(ctx context.Context, except string) (revision string, err error) {
	changed, err := output(ctx, ".", "git", "status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude)"+except)
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("cannot measure a baseline: a revision has to name its sources, and these are not committed:\n%s", changed)
	}
	return output(ctx, ".", "git", "rev-parse", "HEAD")
}

// sourcesOf unpacks the working directory as it was in a revision. why is set when the revision is
// not there, as in a tarball or a shallow clone.
func sourcesOf(ctx context.Context, revision, dir string) (why string, err error) {
	if strings.HasPrefix(revision, "-") || revision == "" {
		return fmt.Sprintf("it names no revision but %q", revision), nil
	}
	if _, err := output(ctx, ".", "git", "cat-file", "-e", revision+"^{commit}"); err != nil {
		return "there is no revision " + short(revision) + " here", ctx.Err()
	}
	packed := dir + ".tar"
	if _, err := output(ctx, ".", "git", "archive", "--output="+packed, revision); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot unpack %s: %w", short(revision), err)
	}
	_, err = output(ctx, ".", "tar", "-x", "-C", dir, "-f", packed)
	return "", err
}

// short is a revision in a message.
func short(revision string) string { return revision[:min(len(revision), 12)] }
