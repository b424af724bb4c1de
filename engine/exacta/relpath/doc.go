// Package relpath is what may be a path inside a project (exacta §4.16 rule 4, §4.17): the form
// of a path, and the rules that protect places. It looks at text only. Symbolic links and kinds
// of files are found by who opens the path.
//
// Rules of one path, the first that fits decides:
//
//	unsafe (Check)                                             denied
//	.exacta .git .hg .svn at any depth                         denied, in any case of letters
//	file_rules.deny of the configuration                       denied
//	file_rules.allow of the configuration                      allowed
//	directories .vs node_modules bin obj at any depth,
//	packages/ at the root of a .NET project                    denied
//	files .env .env.* *.pfx *.p12 *.key *.pem *.ppk            denied, in any case of letters
//	everything else                                            allowed
//
// Globs are relative to the root: * stays within one component, ** crosses them, a leading **/
// is any depth, and a trailing / is a directory with everything under it. Everything else is
// literal. A match takes time in proportion to path × glob, whatever either holds: the
// configuration of a project is not trusted.
package relpath
