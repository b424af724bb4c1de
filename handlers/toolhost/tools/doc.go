// Package tools holds the tools that are part of the server (toolhost §4.7).
//
//	Env        what they work on: directories, limits, the clock, from MACHINA_* (toolhost §6)
//	Builtins   all of them with their descriptors, sorted by AID
//
// Every file a caller names is opened through a root, a directory that no name leaves: not by "..",
// an absolute path, or a symbolic link. Names are opened component by component, and the system
// never follows a link; a link inside the root may lead on inside it, one as the last component is
// refused, and so is anything but a regular file. A hard link to a file from outside counts as
// inside; so do file systems mounted there. Files that the kernel makes up (/proc, /sys and the
// like) are not regular here: to read one may take for ever, or do something.
//
// Integers by value are taken however they are spelled (3, 3.0, 3e0); others count as absent, as
// members of the wrong type do (toolhost §4.7). Of repeated members the last counts (§2.4).
package tools
