// Package ndjson splits a stream of newline-delimited JSON into lines without copying, under a
// limit of the line's length (toolhost §2.2). It knows nothing of JSON: a line is any bytes.
//
//	line = *( any byte but LF ) [ CR ] LF
//
// A line ends with "\n"; exactly one "\r" before that is dropped, any other "\r" belongs to the
// line. The limit counts what is left. However the stream is cut into pieces, the lines are the
// same. How to read one, in being what the caller has not used yet:
//
//	skipping = false, scanned = 0
//	loop: if skipping { used, done = Skip(in); drop used; skipping = !done }
//	      else { line, used, st, scanned = Split(in, scanned, limit); handle st; drop used }
//
//	More     read on; nothing was used
//	Line     handle the line, then drop used bytes
//	TooLong  answer, drop used bytes, skipping = true
//
// At the end of the stream Last turns what is left into a line or not.
package ndjson
