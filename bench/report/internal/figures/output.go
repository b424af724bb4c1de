package figures

import "strings"

// Output is what a command printed once.
type Output struct {
	Command, Date, Revision string // empty where the file has none
	Text                    string // without empty lines around it
}

// parseOutputs takes the outputs of one text file apart.
func parseOutputs(text string) (all []Output) {
	var o Output
	head := true
	var body strings.Builder
	end := func() {
		if o.Text = strings.Trim(body.String(), "\n"); o.Text != "" {
			all = append(all, o)
		}
		o, head = Output{}, true
		body.Reset()
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "command: ") {
			end()
		}
		if head && o.take(strings.TrimSpace(line)) {
			continue
		}
		head = false
		body.WriteString(line)
	}
	end()
	return all
}

// take reads one line of the head, and reports false for one that is none.
func (o *Output) take(line string) bool {
	key, value, ok := strings.Cut(line, ": ")
	if !ok {
		return false
	}
	switch key {
	case "command":
		o.Command = value
	case "date":
		o.Date = value
	case "revision":
		o.Revision = value
	default:
		return false
	}
	return true
}
