package app

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"trunkline/engine/link"
	"trunkline/handlers/ops"
)

// loopsOf returns the listener with event loops whose connections have names that begin with name,
// nil where there is none.
func (s *server) loopsOf(name string) *listener {
	for _, l := range s.listeners() {
		if l.loops != nil && l.name == name {
			return l
		}
	}
	return nil
}

// monitor begins to observe a connection for /monitor.
func (s *server) monitor(conn string, payload int) (ops.Monitor, error) {
	if payload > 0 && !s.cfg.Load().Admin.MonitorPayloads {
		return nil, &ops.Refusal{Status: http.StatusForbidden, Text: "cannot show payloads: admin.monitor_payloads is false",
			Hint: "everyone who reaches the admin address could read them; set admin.monitor_payloads=true to allow it"}
	}
	name, number, _ := strings.Cut(conn, "-")
	if standby := s.options.cluster.Standing().Standby(); standby != "" && s.router == nil && name != "exacta" { // projects stay on their node
		return nil, &ops.Refusal{Status: http.StatusServiceUnavailable, Text: fmt.Sprintf("cannot monitor connection %q here: %s", conn, standby),
			Hint: "clients of a standby are connections of the owner: ask the admin address of that node"}
	}
	id, err := strconv.ParseUint(number, 10, 64)
	of := s.loopsOf(name)
	if of == nil || err != nil {
		return nil, &ops.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("cannot monitor connection %q: want one of ipc, toolhost, threads or exacta, such as ipc-12", conn),
			Hint: "'trunkline connections' lists them; those over HTTP cannot be monitored"}
	}
	m, err := of.form.Observe(&of.taps, id, payload)
	if err != nil {
		return nil, monitorRefusal(conn, err)
	}
	return m, nil
}

// monitorRefusal gives an error of Observe its status.
func monitorRefusal(conn string, err error) error {
	r := &ops.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("cannot monitor connection %s: %v", conn, err), Hint: "'trunkline connections' lists those that are open"}
	switch {
	case errors.Is(err, link.ErrTapped):
		r.Status, r.Hint = http.StatusConflict, "one reader at a time; end the other one first"
	case errors.Is(err, link.ErrTaps):
		r.Status, r.Hint = http.StatusTooManyRequests, "end one of the others first"
	}
	return r
}
