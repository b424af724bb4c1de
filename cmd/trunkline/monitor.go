package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/ops"
)

// monitorFlags are the arguments of monitor beside its connection.
type monitorFlags struct {
	adminQuery
	payload         bool
	maxBytes, count int
}

func newMonitorCmd() *cobra.Command {
	var f monitorFlags
	cmd := &cobra.Command{
		Use:   "monitor CONNECTION",
		Short: "Show the frames of one connection as they pass",
		Long: "Show the frames of one connection of the kernel endpoint as they pass, or the\n" +
			"lines of one to the tools, threads or projects, a line each, until it is\n" +
			"closed, SIGINT, SIGTERM or --count of them. The names of connections are those\n" +
			"of 'trunkline connections'; those over HTTP cannot be monitored.\n\n" +
			"The connection is not slowed down. What is too much for this side is lost and\n" +
			"counted where it is missing. Payloads are shown with --payload, if the server\n" +
			"has admin.monitor_payloads=true, and never with the credentials in them.",
		Example: "  trunkline monitor ipc-12\n  trunkline monitor ipc-12 --payload --max-bytes 200\n  trunkline monitor ipc-12 --json --count 10",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.payload, "payload", false, "show payloads as JSON")
	fs.IntVar(&f.maxBytes, "max-bytes", 1024, "bytes of each payload at most, up to "+strconv.Itoa(ops.MaxPayloadBytes))
	fs.IntVarP(&f.count, "count", "n", 0, "end after this many frames; 0 goes on")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runMonitor(cmd, &f, args[0]) }
	return cmd
}

func runMonitor(cmd *cobra.Command, f *monitorFlags, conn string) error {
	switch {
	case f.count < 0:
		return cli.Errorf(cli.CodeUsage, "cannot use --count %d: it must not be negative", f.count)
	case f.maxBytes < 1 || f.maxBytes > ops.MaxPayloadBytes:
		return cli.Errorf(cli.CodeUsage, "cannot use --max-bytes %d: want 1 to %d", f.maxBytes, ops.MaxPayloadBytes)
	}
	if err := f.find(cmd); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	resp, err := f.open(ctx, conn)
	if err != nil {
		return endedBySignal(ctx, err)
	}
	defer resp.Body.Close()
	if !cli.JSON(cmd) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trunkline: monitoring %s\n", conn)
	}
	return endedBySignal(ctx, f.show(cmd, resp.Body, conn))
}

// open begins to monitor. The timeout is for the beginning only.
func (f *monitorFlags) open(ctx context.Context, conn string) (*http.Response, error) {
	ask := url.Values{"conn": {conn}}
	if f.payload {
		ask.Set("payload", strconv.Itoa(f.maxBytes))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	begin := time.AfterFunc(f.timeout, func() { cancel(context.DeadlineExceeded) })
	resp, err := f.do(ctx, http.MethodGet, "/monitor?"+ask.Encode(), nil)
	begin.Stop()
	if err != nil {
		cancel(nil)
		return nil, f.explain(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer cancel(nil)
		defer resp.Body.Close()
		return nil, refused(resp)
	}
	return resp, nil
}

// maxMonitorLine bounds a line of the answer: a payload whose bytes are all escaped, and the rest.
const maxMonitorLine = 8 * ops.MaxPayloadBytes

// show prints the lines of the answer.
func (f *monitorFlags) show(cmd *cobra.Command, body io.Reader, conn string) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxMonitorLine)
	out := cmd.OutOrStdout()
	for shown := 0; lines.Scan(); {
		var fr ops.Frame
		if err := json.Unmarshal(lines.Bytes(), &fr); err != nil {
			return fmt.Errorf("cannot understand the answer of %s: %w", f.addr, err)
		}
		text := bytes.Clone(lines.Bytes())
		if !cli.JSON(cmd) {
			text = frameLine(&fr)
		}
		if err := writeLine(out, text); err != nil {
			return err
		}
		if fr.Type == "closed" {
			return nil
		}
		if fr.Direction != "" {
			shown++
		}
		if shown == f.count && f.count > 0 {
			return nil
		}
	}
	err := lines.Err()
	if err == nil {
		err = errors.New("the server ended the answer")
	}
	return f.explain(fmt.Errorf("cannot go on monitoring %s: %w", conn, err))
}

// frameLine is a frame for people.
func frameLine(f *ops.Frame) []byte {
	at := f.At.Local().Format("15:04:05.000")
	switch f.Type {
	case "lost":
		return fmt.Appendf(nil, "%s --  %d frames are missing here, there was no room for them", at, f.Lost)
	case "closed":
		return fmt.Appendf(nil, "%s --  the connection is closed", at)
	}
	b := fmt.Appendf(nil, "%s %-3s %-10s %s", at, f.Direction, f.Type, cli.Visible(subject(f)))
	b = fmt.Appendf(b, "  %s", cli.Bytes(uint64(f.Bytes)))
	if f.Seconds > 0 {
		b = fmt.Appendf(b, "  after %s", benchview.LatencyText(int64(f.Seconds*1e9)))
	}
	if len(f.Payload) > 0 {
		b = fmt.Appendf(b, "  %s", cli.Visible(string(f.Payload)))
	}
	if f.PayloadCut != "" {
		b = fmt.Appendf(b, "  %s…", cli.Visible(f.PayloadCut))
	}
	return b
}

// subject is what a frame is about: its method, the id of its request, and the code of an error.
func subject(f *ops.Frame) string {
	parts := []string{f.Method}
	if f.ID != "" {
		parts = append(parts, "#"+f.ID)
	}
	return strings.TrimSpace(strings.Join(append(parts, f.Code), " "))
}
