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

// Bounds of a summary (threads §4.7).
const (
	// maxWindow is the most messages that a summary covers.
	maxWindow = 1000
	// maxText is the most bytes of Summary.Text.
	maxText = 4096
	// maxItems is the most Summary.OpenItems.
	maxItems = 100
)

// Message is a message of a thread.
type Message struct {
	Seq        uint64
	ID, Sender string
	// Kind is chat, event or system.
	Kind string
	// Body is only read up to the end of its first line; a Clip of it will do.
	Body []byte
	// Metadata is an object in checked JSON, nil if there is none.
	Metadata []byte
	// InReplyTo is the identifier of another message, empty if there is none.
	InReplyTo string
}

// Summary is what a reader of a thread learns first.
type Summary struct {
	// Text is one line.
	Text string
	// OpenItems is never nil. Each item is one line.
	OpenItems []string
}

// Summarize returns the summary of the last messages of a thread, in ascending order. Of a longer
// window it reads the last maxWindow. latest is the number of the last message of the thread,
// status its state. It keeps nothing of window.
func Summarize(window []Message, latest uint64, status string) Summary {
	t := newTracker(window[max(0, len(window)-maxWindow):])
	for i := range t.window {
		t.read(i)
	}
	return Summary{Text: t.text(latest, status), OpenItems: t.items(status)}
}
