// Package sock makes the one system call of a turn as cheap as the platform allows, and asks a socket what its peer has.
package sock
