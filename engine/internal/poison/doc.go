// Package poison overwrites memory whose loan has ended, so that code that kept a view of it fails
// in a test instead of reading another request's bytes in production. It works under the race
// detector and with the build tag invariants, and empty (inlined away) otherwise.
package poison

// Byte is what returned memory is filled with.
const Byte = 0xCC
