// Package workspace is the only part of projects that touches their disk (exacta §4.1, §4.17,
// §4.18): finding the root, reading the tree, the folder .exacta, and writing with a way back.
//
// Everything below the root is reached through handles of directories, one component at a time,
// and no component that is a symbolic link is followed. What was checked and what is changed is
// the same handle, so a link that is put in between is refused or has no effect. A file is changed
// by a new file that takes its place: another hard link to it, inside or outside, keeps its bytes.
//
// A change of files belongs to a Point, which is the way back:
//
//	NewPoint   .exacta/rollback/<id>/manifest.json, without entries
//	Add        original bytes of the targets, fsynced; then the entries, fsynced
//	Prepare    directories and temporary files <name>.tmp.<id>, fsynced
//	Commit     each target is compared again and replaced
//	Seal       the point is complete; a set of diffs that is not is undone by Recover
//	Undo       from the last entry to the first
//
// After a stop at any place the files of the tree and the manifest determine what to undo: a target
// has its old hash, its new hash, or was changed by another program and stays as it is.
package workspace
