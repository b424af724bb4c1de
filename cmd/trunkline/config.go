package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
)

func newConfigCmd() *cobra.Command {
	return group(&cobra.Command{Use: "config", Short: "Show or check the settings a server would start with"},
		"show and check", newConfigShowCmd(), newConfigCheckCmd())
}

// group completes a command whose verbs do the work; list names them.
func group(cmd *cobra.Command, list string, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := cli.Errorf(cli.CodeUsage, "cannot run %s without a verb", cmd.Name())
		if len(args) > 0 {
			err = cli.Errorf(cli.CodeUsage, "unknown command %q for %q", args[0], cmd.CommandPath())
		}
		return err.WithHint("the verbs are " + list)
	}
	cmd.AddCommand(verbs...)
	return cmd
}

func newConfigShowCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print every setting, its value and where the value came from",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			rows := [][]string{{"SETTING", "VALUE", "ORIGIN"}}
			for _, r := range c.Rows() {
				rows = append(rows, []string{r.Key, valueText(r.Value), r.Origin})
			}
			return cli.Show(cmd, shownConfig{File: c.File(), Settings: c.Rows()}, rows)
		},
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

// shownConfig is the document of config show --json.
type shownConfig struct {
	File     string       `json:"file"`
	Settings []config.Row `json:"settings"`
}

func newConfigCheckCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the settings and the files they name, without starting anything",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			for _, a := range []*config.Access{&c.Kernel.Access, &c.HTTP.Access, &c.Exacta.Access} {
				if _, err := a.TLS(); err != nil {
					return cli.AsUsage(err, "")
				}
			}
			if _, err := c.Exacta.Server(); err != nil {
				return cli.AsUsage(err, "")
			}
			if cli.JSON(cmd) {
				return cli.WriteJSON(cmd.OutOrStdout(), checkedConfig{OK: true, File: c.File()})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "settings are valid (%s)\n", c.Summary())
			return err
		},
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

// checkedConfig is the document of config check --json; a failed check is an error document
// instead.
type checkedConfig struct {
	OK   bool   `json:"ok"`
	File string `json:"file"`
}

// loadConfig reads the settings for a command that carries config.AddFlags; what is wrong with them
// is a usage error.
func loadConfig(cmd *cobra.Command) (*config.Config, error) {
	c, err := config.Load(cmd.Flags(), os.Environ())
	if err != nil {
		return nil, cli.AsUsage(err, "run 'trunkline config show' for the names, values and origins of all settings")
	}
	for _, w := range c.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	return c, nil
}

// valueText makes an empty value visible in a table.
func valueText(v any) string {
	if v == "" {
		return `""`
	}
	return fmt.Sprint(v)
}
