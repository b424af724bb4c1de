// Package huge asks the operating system to back large tables with huge pages.
//
// At ten million rows a look-up touches half a dozen lines anywhere in some gigabytes, and with
// pages of 4 KiB each of them costs a walk through page tables that are themselves too large for
// the caches. Many systems give huge pages only where they are asked for
// (transparent_hugepage/enabled is "madvise"), and the Go runtime does not ask for its heap.
//
// Advice changes no content and may be ignored. It covers whole areas of 2 MiB, and so whatever
// else the heap keeps there.
package huge
