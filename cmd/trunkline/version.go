package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
)

// version and revision are set by the linker (-ldflags "-X main.version=…"); empty in a plain go
// build.
var version, revision string

// flagVersion prints the build for people; the verb of that name belongs to the envelope exchange.
const flagVersion = "version"

func printVersion(cmd *cobra.Command) error {
	b := obs.ReadBuild(version, revision)
	if cli.JSON(cmd) {
		return cli.WriteJSON(cmd.OutOrStdout(), b)
	}
	modified := ""
	if b.Modified {
		modified = " modified"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "trunkline %s (revision %s%s, %s, %s/%s)\n",
		b.Version, b.Revision, modified, b.Go, b.OS, b.Arch)
	return err
}
