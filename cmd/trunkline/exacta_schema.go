package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/exacta/schema"
)

func newExactaSchemaCmd() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a message, or the names of all",
		Long: "Print a JSON Schema (2020-12) of the protocol of projects by its name or $id. Without a name the names are printed.\n" +
			"--dir DIR writes all schemas into a directory, a file each.",
		Example:           "  trunkline exacta schema\n  trunkline exacta schema command:Build:payload\n  trunkline exacta schema --dir schemas",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(schema.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case dir != "" && len(args) > 0:
				return cli.Errorf(cli.CodeUsage, "cannot write one schema: --dir takes no name")
			case dir != "":
				return writeSchemas(dir)
			case len(args) == 0:
				for _, name := range schema.Names() {
					if _, err := fmt.Fprintln(cmd.OutOrStdout(), name); err != nil {
						return err
					}
				}
				return nil
			}
			text, ok := schema.Lookup(args[0])
			if !ok {
				return cli.Errorf(cli.CodeNotFound, "cannot find the schema %q", args[0]).WithHint("run 'trunkline exacta schema' for all names")
			}
			_, err := cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all schemas into the directory `DIR`, which is made if it is missing")
	return cmd
}

// writeSchemas writes all schemas into a directory.
func writeSchemas(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range schema.Names() {
		text, _ := schema.Lookup(name)
		if err := os.WriteFile(filepath.Join(dir, schema.File(name)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
