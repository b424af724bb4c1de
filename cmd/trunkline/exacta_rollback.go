package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/codec/jsonx"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/secret"
	"trunkline/handlers/exacta/exactaclient"
	"trunkline/handlers/exacta/workspace"
)

func newExactaRollbackCmd() *cobra.Command {
	var path string
	var list bool
	cmd := &cobra.Command{
		Use:   "rollback POINT",
		Short: "Take a plan or a set of diffs back, without a server",
		Long: "Restore the files of a rollback point: the id of an execution, or the one that 'trunkline exacta apply' prints, or how it\n" +
			"begins. --list shows them, also while a server has the project. A file that was changed since stays as it is, and its point is kept (FS-006). The project must not be open in a server\n" +
			"(FS-005), and an execution that is not at its end must be resumed or cancelled first (ST-001).\n\n" + exitHelp,
		Example: "  trunkline exacta rollback --list\n  trunkline exacta rollback 14275667 --project /srv/demo",
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			ws, f := openWorkspace(path, c.Exacta.KeyPath(), list)
			if f != nil {
				return offline(f)
			}
			defer ws.Close()
			if list {
				return listPoints(cmd, ws)
			}
			return rollBack(cmd, ws, args[0])
		},
	}
	cmd.Flags().StringVarP(&path, "project", "C", ".", "path of the project, or in it")
	config.AddSourceFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&list, "list", "l", false, "list the rollback points, the newest first")
	return cmd
}

const pointsHint = "'trunkline exacta rollback --list' shows the rollback points"

// openWorkspace opens the project of a path as a server does, with its lock unless it is only read.
func openWorkspace(path, keyFile string, read bool) (*workspace.Project, *errcode.Fault) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, errcode.New("FS-001", err.Error(), "working directory")
	}
	home, _ := os.UserHomeDir()
	root, _, f := workspace.Locate(path, home, os.TempDir(), nil)
	if f != nil {
		return nil, f
	}
	key, _ := workspace.LoadKey(keyFile) // without it the point that stays is not proven, no more
	return workspace.Open(root, workspace.Options{Secret: secret.Find, Key: key, ReadOnly: read})
}

// offline gives a fault of the disk its exit status and a hint.
func offline(f *errcode.Fault) *cli.Error {
	e := &exactaclient.Error{Code: f.Code, Message: f.Message(), Detail: f.Detail}
	return explained(projectStatus(e), e, recoveryHint(e))
}

// pointOutput is a rollback point under --json.
type pointOutput struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	CreatedAt string   `json:"created_at"`
	Sealed    bool     `json:"sealed"`
	Conflicts int      `json:"conflicts"`
	Files     []string `json:"files"`
}

func listPoints(cmd *cobra.Command, ws *workspace.Project) error {
	points, f := ws.Points()
	if f != nil {
		return offline(f)
	}
	listed := []pointOutput{}
	rows := [][]string{{"POINT", "KIND", "CREATED", "FILES", "CONFLICTS"}}
	for _, pt := range points {
		o := pointOutput{pt.ID, pt.Kind, pt.CreatedAt, pt.Sealed, pt.Conflicts, filesOf(pt.Entries)}
		listed = append(listed, o)
		rows = append(rows, []string{short(o.ID), o.Kind, cli.Visible(o.CreatedAt), strconv.Itoa(len(o.Files)), strconv.Itoa(o.Conflicts)})
	}
	return cli.Show(cmd, listed, rows)
}

func filesOf(entries []workspace.Entry) []string {
	files := []string{}
	for _, e := range entries {
		if !slices.Contains(files, e.Path) {
			files = append(files, e.Path)
		}
	}
	return files
}

// rollBack restores a point by the rules of exacta §4.8.
func rollBack(cmd *cobra.Command, ws *workspace.Project, id string) error {
	if key, ok := codec.ParseID([]byte(id)); ok {
		id = key.String()
	} else {
		points, f := ws.Points()
		if f != nil {
			return offline(f)
		}
		points = slices.DeleteFunc(points, func(pt *workspace.Point) bool { return !strings.HasPrefix(pt.ID, strings.ToLower(id)) })
		if len(points) != 1 || len(id) < minPlanName {
			return cli.Errorf(cli.CodeUsage, "cannot use %q as the id of a rollback point: %d begin with it, of at least %d characters", id, len(points), minPlanName).WithHint(pointsHint)
		}
		id = points[0].ID
	}
	if _, f := ws.LoadPoint(id); f != nil { // before the lock, which makes a folder where there is none
		return offline(f).WithHint(pointsHint)
	}
	if f := ws.Lock(); f != nil {
		return offline(f)
	}
	if err := atRest(ws); err != nil {
		return err
	}
	pt, f := ws.LoadPoint(id)
	if f != nil {
		return offline(f)
	}
	all, ops := filesOf(pt.Entries), map[string]workspace.Op{}
	for _, e := range slices.Backward(pt.Entries) {
		ops[e.Path] = e.Op // the first one counts
	}
	f = pt.Undo(0)
	kept := filesOf(pt.Entries)
	restored := slices.DeleteFunc(all, func(file string) bool { return slices.Contains(kept, file) })
	if f == nil {
		f = pt.Drop() // a point without entries is of no use
	}
	if err := showRollback(cmd, id, restored, kept, ops); err != nil {
		return err
	}
	if f != nil {
		return offline(f)
	}
	return nil
}

// atRest refuses a project whose execution is not at its end: its next session would compare the
// files with what the execution did to them. It refuses a state that cannot be read, which may have
// such an execution.
func atRest(ws *workspace.Project) error {
	st, f := ws.ReadState()
	if f != nil {
		return offline(f).WithHint("a server that opens the project puts the damaged state aside")
	}
	if st == nil {
		return nil
	}
	state, known := projects.ParseState(st.State)
	if !known || st.Execution != nil || state == projects.Executing || state == projects.Paused || state == projects.Cancelling {
		e := offline(errcode.New("ST-001", "an execution is not at its end", st.State, "Rollback"))
		return e.WithHint("a server that opens the project resumes it or cancels it: 'trunkline exacta resume', 'trunkline exacta cancel'")
	}
	return nil
}

func showRollback(cmd *cobra.Command, id string, restored, kept []string, ops map[string]workspace.Op) error {
	out := cmd.OutOrStdout()
	if cli.JSON(cmd) {
		text := jsonx.Build(nil).Text("rollback_point_id", id).Texts("restored", restored).Texts("conflicts", kept).End()
		return cli.WriteJSON(cmd.OutOrStdout(), json.RawMessage(text))
	}
	for i, file := range append(restored, kept...) {
		done := "restored"
		switch {
		case i >= len(restored):
			done = "kept    "
		case ops[file] == workspace.Create:
			done = "removed "
		}
		if _, err := fmt.Fprintln(out, done, cli.Visible(file)); err != nil {
			return fmt.Errorf("cannot write output: %w", err)
		}
	}
	return nil
}
