// Package conformance has the tests of projects (exacta §2 to §9) against the real program: the
// tables of the contract and its examples over every carrier. Tests are named after sections.
// Every line that a server sends is checked for its form, its counters and its error object,
// whatever the test is about.
package conformance
