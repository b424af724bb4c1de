package supervisor

import (
	"strconv"
	"strings"
)

// paneFormat is what list-panes prints of a pane: the fields of threads §4.9, and whether keys for
// it reach other panes too, or none. Names of windows and commands are hostile: with a separator or
// a line break in them they could forge lines. So what is not plain in them is replaced by a
// character that is in no target.
const paneFormat = "#{" + plainChars + ":session_name}|#{" + plainChars + ":window_name}|#{window_index}|#{pane_index}|#{pane_id}|" +
	"#{pane_dead}|#{pane_in_mode}|#{" + plainChars +
	":pane_current_command}|#{pane_synchronized}#{pane_input_off}|#{pane_pid}"

// plainChars is a modifier of formats that replaces what is not plain.
const plainChars = "s~[^A-Za-z0-9_@%+=,./-]~?~"

// pane is a line of list-panes.
type pane struct {
	session, window, windowIndex, index, id string
	dead, inMode                            bool
	command                                 string
	shared                                  bool // keys for the pane reach others too, or none
	pid                                     int  // of the process that the pane was opened with
}

// target is a parsed runtime. pane is -1 if the runtime names none.
type target struct {
	session, window string
	pane            int
}

// parsePanes reads what list-panes printed.
func parsePanes(text string) []pane {
	var list []pane
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(f) == 10 {
			pid, _ := strconv.Atoi(f[9]) // no process has number 0
			list = append(list, pane{f[0], f[1], f[2], f[3], f[4],
				f[5] != "0", f[6] != "0", f[7], strings.Contains(f[8], "1"), pid})
		}
	}
	return list
}

// find returns the only pane that a target names, by exact comparison. A window may be named by its
// name or its index: where these are different panes, there is none.
func (to *target) find(list []pane) (found pane, ok bool) {
	for _, p := range list {
		switch {
		case p.session != to.session || p.window != to.window && p.windowIndex != to.window:
		case to.pane >= 0 && p.index != strconv.Itoa(to.pane):
		case ok && p.id != found.id:
			return pane{}, false
		default: // a window may be linked twice
			found, ok = p, true
		}
	}
	return found, ok
}

// clientFormat prints when a client was used, and the panes that it shows.
const clientFormat = "#{client_activity}|#{?window_zoomed_flag,#{pane_id},#{P:#{pane_id} }}"

// lastActivity returns when the latest client that shows a pane was used, in seconds since 1970.
func lastActivity(id, text string) (latest int64, viewed bool) {
	for line := range strings.Lines(text) {
		at, panes, _ := strings.Cut(line, "|")
		seconds, err := strconv.ParseInt(at, 10, 64)
		for shown := range strings.FieldsSeq(panes) {
			if err == nil && shown == id {
				latest, viewed = max(latest, seconds), true
			}
		}
	}
	return latest, viewed
}
