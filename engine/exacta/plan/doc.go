// Package plan is the documents of plans and the rules that a plan obeys (exacta §4.5): steps with
// their diffs and hashes, the file .exacta/plan/<id>.json, the statuses, and what is wrong with a
// plan. It is pure: what is true of the project now is passed in.
package plan
