// Package sessionstate holds the state that a caller and its tools share: eight slots, DS0 to DS7,
// each empty or holding one artifact (toolhost §3.6).
//
//	Snapshot   {"slots":{"<n>":Artifact,...}}
//	Delta      {"delta":true,"slots":{"<n>":Artifact,...},"removed_slots":[n,...]}
//	Artifact   {"type":"...","provenance":"...","content_json":"...","size_bytes":n}
//
//	State         the eight slots: a small value whose artifacts are shared and never change
//	Apply         checks and merges what a peer sent, all or nothing
//	AppendDelta   writes what one tool call changed
//	Digest        distinguishes two states
//
// A tool call works on a Clone. Only the slots that the tool writes are copied; dropping the clone
// undoes the call.
//
// What a peer sends is refused rather than repaired: null is no value of any member, though unknown
// members are passed over. Of repeated members only the last counts and is judged (toolhost §2.4);
// escapes in a name change nothing. Where several things are wrong, the order of the table in §3.6
// decides which is named, then the lower slot and the earlier member.
//
// Not implemented, on purpose: reading content_json, and versions of a state (toolhost D13).
package sessionstate
