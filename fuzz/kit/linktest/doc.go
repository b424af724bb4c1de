// Package linktest is a small protocol for tests of connection owners: length-prefixed frames whose
// first byte is a command.
//
//	┌────────────┬─────────┬─────────┐
//	│ u32 length │ command │ payload │   length counts command and payload
//	└────────────┴─────────┴─────────┘
//
//	Echo      answers with its payload
//	Big       u32 size: answers with that many patterned bytes
//	Block     blocks the session until Session.Release, then answers
//	Pending   stays in flight until Session.Release, then answers; later frames are served
//	Stream    u32 count, u32 size: a goroutine sends count chunks, then End; a drain ends it
//	Open      opens a stream that lives until EOF or drain
//	Panic     panics in Feed; panicPump in the next Pump
//	Bye       echoes, then asks for the connection to be closed
package linktest
