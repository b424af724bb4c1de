// Package cli is the manners of the command line: one error type with an exit code and hints, one
// renderer for it, one way to print a table or a JSON document. Every verb uses it, so that a
// script meets the same codes and the same shapes everywhere.
//
// Data goes to stdout and talk goes to stderr. Under --json a failure is one JSON object on stderr.
//
//	0 ok · 1 failed · 2 usage · 3 not found · 4 not allowed · 5 unavailable or timed out · 6 conflict · 130 interrupted
package cli
