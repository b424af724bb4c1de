// Package token verifies the bearer tokens of agent threads, and signs those of development
// (threads §3.1): JSON Web Tokens in compact form, by a key set over HTTP or in a file, a public
// key, or a shared secret.
//
// A Verifier is what a server asks. It remembers verified tokens for a minute, follows its key set
// and its file of revocations, and answers from memory. What it refuses, it refuses with a Refusal
// that names one reason of the contract's table; the order of the checks is the order of that
// table.
//
// The signature of a token is checked by golang-jwt, the keys of a set are read by jwkset. Which
// key may serve which algorithm, and what a claim must look like, is decided here.
package token
