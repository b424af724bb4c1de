// Package screen is a small model of a terminal for the tests of what is painted on one: rows of
// cells, a cursor, and the few commands that a block of lines repainted in place needs. A command
// that it does not know fails the test.
package screen
