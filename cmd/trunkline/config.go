package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/doctor"
)

func newConfigCmd() *cobra.Command {
	return group(&cobra.Command{Use: "config", Short: "Show or check the settings a server would start with"},
		"show, check and schema", newConfigShowCmd(), newConfigCheckCmd(), newConfigSchemaCmd())
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
			rows := [][]string{{"SETTING", "VALUE", "ORIGIN", "RELOAD"}}
			for _, r := range c.Rows() {
				rows = append(rows, []string{r.Key, valueText(r.Value), r.Origin, r.Reload})
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
		Short: "Check the settings and what they name, without starting anything",
		Long: "Check the settings, and look at what they name: certificates and their\n" +
			"keys, files with tokens, directories. An address in use is a warning,\n" +
			"for it may be that of the running server. No other machine is asked.\n" +
			"These are checks of 'trunkline doctor', which has more of them, and what\n" +
			"to do about each.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			warnings, err := checkNamed(cmd.Context(), c)
			if err != nil {
				return cli.AsUsage(err, "'trunkline doctor' shows what to do about each")
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w.Text)
			}
			if cli.JSON(cmd) {
				return cli.WriteJSON(cmd.OutOrStdout(), checkedConfig{OK: true, File: c.File(), Warnings: warnings})
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
	OK       bool            `json:"ok"`
	File     string          `json:"file"`
	Warnings []configWarning `json:"warnings"`
}

// configWarning is what a server would start with all the same, or what this user cannot know.
type configWarning struct {
	Key     string `json:"key"`
	Warning bool   `json:"warning"` // true
	Text    string `json:"text"`
}

// checkNamed looks at what the settings name. The error has all that is wrong.
func checkNamed(ctx context.Context, c *config.Config) ([]configWarning, error) {
	warnings := []configWarning{}
	var wrong []string
	for _, f := range doctor.Named(ctx, c).Checks {
		text, named := f.Evidence, strings.Contains(f.Evidence, f.Subject)
		if !named {
			text = f.Subject + ": " + text
		}
		switch {
		case f.Result == doctor.Warning:
			warnings = append(warnings, configWarning{f.Subject, true, text})
		case f.Result == doctor.Failed && named:
			wrong = append(wrong, text)
		case f.Result == doctor.Failed:
			wrong = append(wrong, "cannot use "+text)
		}
	}
	return warnings, config.Problems(wrong)
}

func newConfigSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of the settings file, for editors",
		Long: "Print a JSON Schema (2020-12) of the settings file: names, types, ranges,\n" +
			"defaults and meanings. Editors with a YAML language server use it when\n" +
			"the file begins with:\n\n" +
			"  # yaml-language-server: $schema=trunkline.schema.json",
		Example: "  trunkline config schema >trunkline.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cli.WriteJSON(cmd.OutOrStdout(), config.Schema()) },
	}
}

// loadConfig reads the settings for a command that carries config.AddFlags; what is wrong with them
// is a usage error.
func loadConfig(cmd *cobra.Command) (*config.Config, error) {
	c, err := config.Load(cmd.Flags(), os.Environ())
	return c, settingsRead(cmd, c, err)
}

// settingsRead shows the warnings about settings that were read, and makes what is wrong with them
// a usage error.
func settingsRead(cmd *cobra.Command, c *config.Config, err error) error {
	if err != nil {
		return cli.AsUsage(err, "'trunkline config schema' prints the names, ranges and defaults of all settings")
	}
	for _, w := range c.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	return nil
}

// valueText makes an empty value visible in a table.
func valueText(v any) string {
	if v == "" {
		return `""`
	}
	return fmt.Sprint(v)
}
