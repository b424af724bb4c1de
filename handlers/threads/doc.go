// Package threads runs the methods of agent threads (threads §4) on engine/threads. It is the
// method.Dispatcher of all surfaces:
//
//	handlers/threads/method      the table of methods, fields, faults
//	handlers/threads/token       who asks
//	handlers/threads/web         HTTP
//	handlers/threads/lines       lines of JSON on the event loops
//	handlers/threads             gates G3 to G10 and the answers
package threads
