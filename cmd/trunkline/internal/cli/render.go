package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// FlagJSON is the persistent flag of the root command that turns every output, errors included,
// into JSON.
const FlagJSON = "json"

// JSON reports whether --json was given to cmd or to one of its parents.
func JSON(cmd *cobra.Command) bool {
	f := cmd.Flag(FlagJSON)
	return f != nil && f.Value.String() == "true"
}

// WantsJSON finds --json in raw arguments. It serves the errors that happen before the flags could
// be parsed.
func WantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--" + FlagJSON, "--" + FlagJSON + "=true":
			return true
		}
	}
	return false
}

// rendered is the shape of an error under --json; code is the exit code.
type rendered struct {
	Error string `json:"error"`
	Code  int    `json:"code"`
	Hint  string `json:"hint"`
}

// Render writes err to w (stderr): "trunkline: message" with "hint:" lines and the usage text, or
// one JSON object of error, code and hint. A nil err and an Error without a cause write nothing.
func Render(w io.Writer, err error, asJSON bool) {
	if err == nil {
		return
	}
	var e *Error
	hint, usage := "", ""
	if errors.As(err, &e) {
		if e.Err == nil {
			return
		}
		hint, usage = e.Hint, e.Usage
	}
	if asJSON {
		_ = json.NewEncoder(w).Encode(rendered{Error: err.Error(), Code: Exit(err), Hint: hint})
		return
	}
	fmt.Fprintf(w, "trunkline: %s\n", err)
	for _, line := range strings.Split(hint, "\n") {
		if line != "" {
			fmt.Fprintf(w, "hint: %s\n", line)
		}
	}
	_, _ = io.WriteString(w, usage)
}

// WriteJSON writes v to w as one indented JSON document with a final newline.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// WriteTable writes rows to w in aligned columns, two spaces apart. Rows may differ in length.
func WriteTable(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}
