// Package gobench builds the test binaries of Go packages, runs their benchmarks and reads what
// they print.
package gobench
