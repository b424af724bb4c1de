package config

import "fmt"

// The settings with the tokens of the admin listener and its web console.
const (
	keyConsoleToken    = "admin.console_token_file"
	keyConsoleOperator = "admin.console_operator_token_file"
)

// minConsoleToken is the length of the shortest of these tokens, in bytes.
const minConsoleToken = 16

// HasTokens reports whether reading the admin listener takes a token.
func (a *Admin) HasTokens() bool { return a.ConsoleTokenFile != "" || a.ConsoleOperatorTokenFile != "" }

// Readers describes who may read the admin listener.
func (a *Admin) Readers() string {
	switch {
	case a.HasTokens() && a.PublicMetrics:
		return "closed without a token, but for probes and /metrics"
	case a.HasTokens():
		return "closed without a token, but for probes"
	case a.Loopback():
		return "open to everybody on this machine"
	}
	return "open to anybody who reaches it"
}

// ConsoleTokens reads the tokens of the admin listener, "" for each that has no file. Two equal
// ones are an error: they would give one person two roles.
func (a *Admin) ConsoleTokens() (viewer, operator string, err error) {
	if viewer, err = secretIn(keyConsoleToken, a.ConsoleTokenFile, minConsoleToken); err == nil {
		operator, err = secretIn(keyConsoleOperator, a.ConsoleOperatorTokenFile, minConsoleToken)
	}
	if err == nil && viewer != "" && viewer == operator {
		err = fmt.Errorf("cannot use one token for two roles: %s and %s hold the same", keyConsoleToken, keyConsoleOperator)
	}
	return viewer, operator, err
}

// Loopback reports whether only this machine reaches the admin listener.
func (a *Admin) Loopback() bool {
	loop, err := isLoopback(a.ListenAddr)
	return loop && err == nil
}
