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
