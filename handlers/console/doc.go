// Package console is the web console: pages of the admin listener that show one server, and that
// let an operator change little of it. Pages are made by the server and are complete without
// JavaScript.
//
//	GET  /console/               overview; its numbers follow over /console/live
//	GET  /console/processes      by filter, in pages; /console/process?pid= is one of them
//	GET  /console/threads        newest first; /console/thread?id= is one of them
//	GET  /console/projects       open ones; /console/project?id= has its plan and events
//	GET  /console/topics         types of events; /console/topic?type= follows some of them
//	GET  /console/connections    open ones; /console/connection?id= is one of them
//	GET  /console/cluster        nodes and partitions, which follow over /console/cluster/live
//	GET  /console/slowlog, /console/store, /console/settings, /console/help
//	POST /console/process/terminate, /console/connection/drop, /console/project/cancel
//	POST /console/cluster/move, and drain, resume and rebalance there
//	POST /console/login, /console/logout
//
// A page with the suffix .json (/console/overview.json for the first one) has the same content.
//
// # Who may come in
//
//	            no token file        token file(s)
//	loopback    reads                reads or changes, by the token that was shown
//	elsewhere   nothing is served    the same
//
// Guard holds to this what else is on the listener: the console knows the tokens and the logins.
//
// A token is shown once in the login form, which sets a cookie with a random session id, or with
// each request as "Authorization: Bearer". A reload may replace the tokens, which ends the logins
// by them. A POST must come from a page of the console and bring the secret of its form.
//
// # Standbys
//
// A node of a cluster that does not own the journal shows pages of itself, which have a note with
// its owner and its last record. Pages of tables are refused (Source.Unready): the owner has them.
//
// # Bounds
//
// A page shows at most maxRows rows and looks at no more than maxScan entries of a table for them.
// Pages with documents of clients are made maxMade at a time.
// A live view reads from a ring of tailEvents events; what the ring lost is marked as a gap, and a
// view that comes back with Last-Event-ID goes on where it was.
package console
