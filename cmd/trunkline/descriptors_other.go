//go:build !linux

package main

// keepDescriptors does nothing where descriptors cannot be marked all at once.
func keepDescriptors() {}
