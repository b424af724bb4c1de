package config

import "fmt"

// The settings with the tokens of the web console.
const (
	keyConsoleToken    = "admin.console_token_file"
	keyConsoleOperator = "admin.console_operator_token_file"
)

// minConsoleToken is the length of the shortest token of the web console, in bytes.
const minConsoleToken = 16

// ConsoleTokens reads the tokens of the web console, "" for each that has no file. Two equal ones
// are an error: they would give one person two roles.
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
