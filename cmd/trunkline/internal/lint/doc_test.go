// Package lint holds the rules of this repository that a program can check: who may import whom,
// how large files, functions and interfaces may grow, what must be documented, what must not be
// written. It has tests only; `make lint` runs them.
//
// Every rule carries its reason, and a failure prints it. An exception is a row in a list next to
// the rule, with a reason of its own.
package lint
