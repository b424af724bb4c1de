// Package planner is the built-in planner of projects (exacta §4.19): it turns a typed request into
// an intent, and an intent into steps.
//
//	input → tokens   spans in quotes, backticks and fences; the rest is split at white space
//	tokens → clauses  ends of sentences, "then", "and" before a verb
//	clause → constraint, or the first form of a table that it matches
//	forms → steps     the edits of one file are one step
//
// It is a pure function of the input, the tree and the configuration: no clock, no I/O of its own.
// The input is untrusted. Any input costs time linear in its length, beside what is read from the
// tree.
package planner
