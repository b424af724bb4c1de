//go:build !linux

package huge

// Advisor stands in for that of Linux.
type Advisor struct{}

// Advise does nothing where huge pages cannot be asked for.
func Advise[T any](*Advisor, *T, int) {}
