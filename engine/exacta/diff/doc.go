// Package diff reads, checks, applies and makes unified diffs of one file (exacta §4.16). It works
// on text and on the bytes of one file; it opens nothing.
//
//	--- a/README.md          or /dev/null: the file is created
//	+++ b/README.md          or /dev/null: the file is deleted
//	@@ -1,3 +1,4 @@          hunks, in the order of the file; none for an empty file
//	 # Demo                  context
//	-Hello.                  of the old side only
//	+Hi.                     of the new side only
//	\ No newline at end of file
//
// Parse applies rules 1 to 5 in the order of the contract, Apply what rule 7 demands of the
// content. Rule 6 is between them and is not here: it looks at the disk and at secrets. A refusal
// is a Problem: the code of the error, the token of the rule, and where.
//
// A diff fits at its line numbers and nowhere else, byte for byte. The numbers of a side without
// lines name the line before the change, as diff and git write them.
package diff
