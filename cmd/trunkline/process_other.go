//go:build !linux

package main

// keepDescriptors does nothing where descriptors cannot be marked all at once.
func keepDescriptors() {}

// hideSecrets does nothing here: the system does not show the environment of a process in a file.
func hideSecrets() error { return nil }
