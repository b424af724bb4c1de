// Package sock makes the one system call of a turn as cheap as the platform allows.
package sock
