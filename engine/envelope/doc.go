// Package envelope is the one model of an envelope, the self-contained state of a request on its
// way through a pipeline of agents, and the engine step that moves it on.
//
//	Env      an envelope read in place: decoded once, changed members overlaid, the rest copied
//	Engine   boundary A: process, create, can-continue, result, validate; pure functions
//
// An envelope comes in two shapes, flat and nested (envelope §3.1), and in two forms: JSON at
// boundary A, MessagePack at boundary B. The form decides whose rules apply. A reply is the input
// with the engine's changes written over it: unknown members, opaque subtrees, the spelling of
// numbers and timestamps all come back as they were.
//
// Env keeps every known member as its raw encoding plus, for the ones that are computed with, the
// value; a change puts a new raw encoding in place. Writing an envelope is therefore copying spans,
// and reading one is a single walk over two levels.
package envelope
