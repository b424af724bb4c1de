// Package orchtest judges engine/orchestration from the outside: its tests know the engine's
// methods and the wording of envelope §3 to §9, nothing of how the engine keeps its state.
//
// Three judges work side by side. Tables state single rows of the specification with their exact
// texts. A model implements §5.2 once more over plain maps, and whole transcripts of random
// pipelines must equal its own; the same program runner serves the seeded test and the fuzz target.
// Concurrency is judged by a linearizability checker over histories of single processes.
//
// The tests encode and decode with code of their own, so that a fault in the codec cannot hide
// behind itself.
package orchtest
