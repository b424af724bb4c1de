//go:build !linux

package workspace

func renameNoReplace(d dir, from, to string) error { return linkThenUnlink(d, from, to) }
