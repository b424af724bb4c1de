package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
	"trunkline/handlers/ipc/client"
	"trunkline/handlers/ops"
)

// adminState is what the admin endpoint told; Error is set when it did not answer.
type adminState struct {
	Addr    string    `json:"addr"`
	Error   string    `json:"error,omitempty"`
	Alive   bool      `json:"alive"`
	Ready   bool      `json:"ready"`
	Reasons []string  `json:"reasons"`
	Build   obs.Build `json:"build"`
}

// kernelState is what kernel.GetSystemStatus told, as JSON of the reply's own keys.
type kernelState struct {
	Addr   string          `json:"addr"`
	Error  string          `json:"error,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`

	reply client.Status
	hint  string // what to do about Error
}

// systemState is the document of status --json. A part that was not asked is null.
type systemState struct {
	OK     bool         `json:"ok"`
	Admin  *adminState  `json:"admin"`
	Kernel *kernelState `json:"kernel"`
}

// maxStatusBody bounds what is read of an admin answer.
const maxStatusBody = 64 << 10

func askAdmin(ctx context.Context, addr string) *adminState {
	s := &adminState{Addr: addr, Reasons: []string{}}
	var health ops.Health
	var ready ops.Ready
	err := errors.Join(
		getJSON(ctx, addr, "/healthz", &health),
		getJSON(ctx, addr, "/readyz", &ready),
		getJSON(ctx, addr, "/version", &s.Build),
	)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		s.Error = first
		return s
	}
	s.Alive, s.Ready, s.Reasons = health.Alive, ready.Ready, ready.Reasons
	if health.Error != "" {
		s.Reasons = append(s.Reasons, health.Error)
	}
	return s
}

// getJSON decodes the body of an answer of either kind: 503 has one too.
func getJSON(ctx context.Context, addr, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return fmt.Errorf("cannot ask admin endpoint %q: %w", addr, err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("cannot reach admin endpoint %s: %w", addr, err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStatusBody)).Decode(into); err != nil {
		return fmt.Errorf("cannot understand the answer of %s%s (%s): %w", addr, path, resp.Status, err)
	}
	return nil
}

func (f *peerFlags) askKernel(ctx context.Context, addr string, secure client.Option) *kernelState {
	s := &kernelState{Addr: addr}
	if err := s.ask(ctx, secure); err != nil {
		err = f.explain(err)
		s.Error = err.Error()
		var e *cli.Error
		if errors.As(err, &e) {
			s.hint = e.Hint
		}
	}
	return s
}

func (s *kernelState) ask(ctx context.Context, secure client.Option) error {
	conn, err := client.Dial(ctx, s.Addr, secure)
	if err != nil {
		return err
	}
	defer conn.Close()
	body, err := conn.Call(ctx, "kernel", "GetSystemStatus", nil)
	if err == nil {
		_, err = s.reply.UnmarshalMsg(body)
	}
	if err == nil {
		s.Status, err = client.AppendJSON(nil, body)
	}
	if err != nil {
		return fmt.Errorf("cannot get the kernel's status from %s: %w", s.Addr, err)
	}
	return nil
}

// verdict returns the first thing that is wrong, as the command's error.
func (s *systemState) verdict() error {
	switch {
	case s.Admin != nil && s.Admin.Error != "":
		return cli.Errorf(cli.CodeUnavailable, "%s", s.Admin.Error).WithHint("is the server running? --admin names another address, --admin= skips this part")
	case s.Admin != nil && !s.Admin.Alive:
		return cli.Errorf(cli.CodeUnavailable, "the server is not alive: %s", strings.Join(s.Admin.Reasons, ", "))
	case s.Admin != nil && !s.Admin.Ready:
		return cli.Errorf(cli.CodeUnavailable, "the server is not ready: %s", strings.Join(s.Admin.Reasons, ", "))
	case s.Kernel != nil && s.Kernel.Error != "":
		return cli.Errorf(cli.CodeUnavailable, "%s", s.Kernel.Error).WithHint(strings.TrimSpace(s.Kernel.hint + "\n--addr= skips this part"))
	}
	return nil
}

func (s *systemState) rows() [][]string {
	var rows [][]string
	add := func(k, v string) { rows = append(rows, []string{k, v}) }
	if a := s.Admin; a != nil && a.Error == "" {
		add("admin", a.Addr)
		add("version", a.Build.Version+" ("+a.Build.Revision+")")
		add("alive", strconv.FormatBool(a.Alive))
		add("ready", strings.Join(append([]string{strconv.FormatBool(a.Ready)}, a.Reasons...), " "))
	}
	if k := s.Kernel; k != nil && k.Error == "" {
		r := &k.reply
		add("kernel", k.Addr)
		add("processes", fmt.Sprintf("%d (%s)", r.Processes.Total, byState(r.Processes.ByState)))
		add("sessions", strconv.FormatInt(r.Orchestration.ActiveSessions, 10))
		add("events published", strconv.FormatInt(r.Commbus.EventsPublished, 10))
		add("commands sent", strconv.FormatInt(r.Commbus.CommandsSent, 10))
		add("queries executed", strconv.FormatInt(r.Commbus.QueriesExecuted, 10))
		add("subscribers", strconv.FormatInt(r.Commbus.ActiveSubscribers, 10))
	}
	return rows
}

func byState(c client.StateCounts) string {
	return fmt.Sprintf("new %d, ready %d, running %d, waiting %d, blocked %d, terminated %d, zombie %d",
		c.New, c.Ready, c.Running, c.Waiting, c.Blocked, c.Terminated, c.Zombie)
}
