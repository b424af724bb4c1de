// Package tools holds the tools that are part of the server (toolhost §4.7).
//
//	Env        what they work on: directories, limits, the clock; read from MACHINA_* once (toolhost §6)
//	Builtins   all of them with their descriptors, sorted by AID
//
// Every file a caller names is opened through a root, a directory that no name leaves: not by "..", not by an absolute path, not
// by a symbolic link that is there or that appears meanwhile. Names are taken apart here and opened component by component, so
// the system never follows a link on its own; a link inside the root may lead on inside it, a link as the last component is
// refused, and so is anything but a regular file, without waiting for it. A second hard link to a file from outside looks like
// the file itself and counts as inside; so do file systems mounted there. Files that the kernel makes up (/proc, /sys and the like) are
// not regular here, whatever their mode and wherever the root is: to read one may take for ever, or do something.
//
// Numbers of an input that are integers by value are taken however they are spelled (3, 3.0, 3e0); all others count as absent, as
// members of the wrong type do (toolhost §4.7). Of repeated members the last counts (toolhost §2.4).
package tools
