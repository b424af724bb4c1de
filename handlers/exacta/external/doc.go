// Package external asks the planners that the operator of the server enabled (exacta §4.20): a
// program that speaks lines of JSON, or a server with the interface of OpenAI.
//
//	Extract, Plan ─► input ─► secrets? ─► cache of the project ── hit ──► strict decoding
//	                                        miss │                              ▲
//	                                             └──► program or server ── answer ┘
//
// A line to a program and its answer:
//
//	{"protocol":"exacta-planner/1","id":"<uuid>","op":"extract_intent","input":{…}}
//	{"id":"<uuid>","ok":true,"result":{…}}
//	{"id":"<uuid>","ok":false,"error":{"code":"AI-003","message":"…"}}
//
// What a planner answers is not trusted: it goes the way of all plans, through the rules of plans
// and the approval, and names no path outside the project. A file of the cache is read the same
// way, since it lies in the project.
//
// A project sends what its own configuration selects, and nothing else: the input, the names and
// sizes of the files of its index, and the content of the files that the intent names. Paths that
// a rule denies, absolute paths and identifiers are never part of it.
//
// Not implemented, on purpose: streaming, several choices, another provider when one fails.
package external
