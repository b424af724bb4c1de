// Package secret finds credentials in text and removes them (exacta §6.6). A pattern of high
// confidence is refused where it may not enter, which is Find. Before text leaves for a log, an
// event or a bundle, Redact replaces those and what is probably a credential.
//
// All patterns are regular expressions of Go, which take linear time on any text. A short test for
// the bytes that each pattern needs goes first, so that text without them is only scanned for
// those bytes.
package secret
