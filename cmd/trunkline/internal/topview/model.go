package topview

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"trunkline/engine/obs"
)

// redrawsPerSecond caps how often the terminal is drawn: as fast as one can read.
const redrawsPerSecond = 10

// Options are what Run needs.
type Options struct {
	// Target is the server, for people.
	Target string
	// Ask asks the server. It gives up in time.
	Ask func(context.Context) (*obs.Overview, error)
	// Interval is the pause between two questions.
	Interval time.Duration
	// Count ends the view after so many intervals; 0 goes on.
	Count int
	Order Order
	// Color is false where NO_COLOR is set: no attribute of text is used.
	Color bool
	// In is the terminal's keyboard, Out the terminal.
	In  io.Reader
	Out io.Writer
}

// Run shows the server on a terminal until q, Ctrl-C, the end of ctx, or Count intervals. A server
// that does not answer is shown, and asked again.
func Run(ctx context.Context, o Options) error {
	m := newModel(ctx, &o)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithFPS(redrawsPerSecond)).Run()
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// model is the state of the view, for bubbletea.
type model struct {
	screen
	ctx           context.Context
	o             *Options
	before        *obs.Overview // the last answer
	shown         int           // intervals
	width, height int
}

func newModel(ctx context.Context, o *Options) *model {
	return &model{screen: screen{target: o.Target, every: o.Interval, order: o.Order}, ctx: ctx, o: o}
}

// answered is an answer of the server, due the end of a pause.
type (
	answered struct {
		overview *obs.Overview
		err      error
	}
	due struct{}
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.ask }

// ask asks the server.
func (m *model) ask() tea.Msg {
	o, err := m.o.Ask(m.ctx)
	return answered{o, err}
}

// wait pauses until the next question.
func (m *model) wait() tea.Cmd {
	return tea.Tick(m.o.Interval, func(time.Time) tea.Msg { return due{} })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case answered:
		if m.take(msg); m.o.Count > 0 && m.shown >= m.o.Count {
			return m, tea.Quit
		}
		return m, m.wait()
	case due:
		if m.paused {
			return m, m.wait()
		}
		return m, m.ask
	}
	return m, nil
}

// take shows an answer. One that comes while the view is paused is dropped.
func (m *model) take(a answered) {
	if m.paused {
		return
	}
	if m.err = a.err; a.err != nil {
		return
	}
	if m.before != nil {
		m.sample = Between(m.before, a.overview)
		m.sample.Sort(m.order)
		m.shown++
	}
	m.before = a.overview
}

// key does what a key asks for.
func (m *model) key(name string) tea.Cmd {
	switch name {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "space", " ":
		m.paused = !m.paused
	case "h", "?":
		m.help = !m.help
	case "up", "k":
		m.from = max(m.from-1, 0)
	case "down", "j":
		m.from++ // methods holds it to what there is
	case "g", "home":
		m.from = 0
	case "s":
		all := Orders()
		m.sort(all[(slices.Index(all, m.order)+1)%len(all)])
	default:
		if i := strings.Index(sortKeys, name); len(name) == 1 && i >= 0 {
			m.sort(Orders()[i])
		}
	}
	return nil
}

// sortKeys are the keys of orders.
const sortKeys = "rem9n"

func (m *model) sort(by Order) {
	if m.order = by; m.sample != nil {
		m.sample.Sort(by)
	}
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

// text is the screen as a terminal gets it; empty before the size of the terminal is known.
func (m *model) text() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	lines := m.lines(m.width, m.height)
	texts := make([]string, min(len(lines), m.height))
	for i := range texts {
		texts[i] = lines[i].Render(m.width, m.o.Color)
	}
	return strings.Join(texts, "\n")
}
