// Package summary makes the summary of a thread from a window of its messages (threads §4.7). It is
// a pure function: the same messages give the same bytes.
//
//	summary.go   Summarize, its input and its bounds
//	tracker.go   the findings of a window: reports, targets, states (rules 2 to 4)
//	text.go      sentences, open items, excerpts (rules 5 to 7)
//
// Texts of messages are foreign. Whatever comes into the summary is squeezed into one line and
// bounded: excerpts and commits as the rules require, severities and files by maxField.
//
// # Readings
//
// Where §4.7 leaves a choice:
//
//   - An empty string in metadata counts as absent, and so does finding_ids without a usable
//     element: the next way to find targets applies. A line that is no integer is absent.
//   - A reply is followed to earlier messages of the window only. The finding of a report that is
//     found is its finding_id, or else its message_id, as in rule 2.
//   - A second report of a finding replaces everything that is shown of it, its number included.
//     Its place in the order and its commits stay.
//   - A fix pushed for a resolved finding changes nothing: its commit came after the resolution.
//   - Commits above 40 bytes are cut, and are compared after that. A severity is compared and shown
//     without space around it. Tasks, files and identifiers are compared as they are.
//   - A first line ends at LF. Other line ends inside it are white space.
//   - A summary above maxText is cut between two characters and ends in "…".
package summary
