package ops

import (
	"net/http"
	"time"
)

// Reload is the body of /reload: the outcome of the last order to read the settings again. The
// order itself is a signal, which the system lets only those send who may.
type Reload struct {
	// PID and Started name the process that gets the signal. Started is when it began, in a form of
	// the system; empty where that is not known.
	PID     int    `json:"pid"`
	Started string `json:"started"`
	// Count is how many orders were carried out since the start.
	Count int64 `json:"count"`
	// At is when the last one began; nil before the first.
	At *time.Time `json:"at"`
	// OK means that the settings are in force; else Error is why all stay as they were.
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Changed are the settings with another value, or whose files have another content. Restart are
	// those whose new value takes a restart.
	Changed []string `json:"changed"`
	Restart []string `json:"restart"`
}

func (c Config) reload(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, c.Reload()) }
