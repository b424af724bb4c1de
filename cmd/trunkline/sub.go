package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/handlers/ipc/ipcclient"
)

// The waits between two attempts to reconnect: each is about half as long again as the one before,
// with jitter, so that a server that comes back does not meet all its subscribers at once.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// subFlags are the arguments of sub beside its event types.
type subFlags struct {
	peerFlags
	count       int
	subscriber  string
	exact       bool
	noReconnect bool
}

func newSubCmd() *cobra.Command {
	var f subFlags
	cmd := &cobra.Command{
		Use:   "sub TYPE...",
		Short: "Print events as they are published",
		Long: "Subscribe to event types and print one JSON object per event and line, until\n" +
			"SIGINT, SIGTERM or --count events. A TYPE with a wildcard is a pattern: tokens\n" +
			"stand between dots, * is any one of them, > at the end is all the rest. Quote\n" +
			"it, so that the shell leaves it alone. With --exact a TYPE means itself.\n\n" +
			"A connection that is lost is made again, and a line on stderr says so: events\n" +
			"that were published meanwhile are missing. A refusal ends the command.\n" +
			"Events that the server had to drop, because this side was too slow, are\n" +
			"reported on stderr as well.",
		Example: "  trunkline sub process.created process.terminated\n" +
			"  trunkline sub 'process.*' 'toolhost.>'\n" +
			"  trunkline sub job.done --count 1 | jq .payload",
		Args: cobra.MinimumNArgs(1),
	}
	f.add(cmd, callTimeout)
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 0, "end after this many events; 0 goes on")
	fs.StringVar(&f.subscriber, "subscriber-id", "", "name of the subscription (default made up by the server)")
	fs.BoolVar(&f.exact, "exact", false, "take * and > as they are: each TYPE is a type")
	fs.BoolVar(&f.noReconnect, "no-reconnect", false, "end with the connection")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runSub(cmd, &f, args) }
	return cmd
}

func runSub(cmd *cobra.Command, f *subFlags, args []string) error {
	if f.count < 0 {
		return cli.Errorf(cli.CodeUsage, "cannot use --count %d: it must not be negative", f.count)
	}
	in, err := f.request(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return endedBySignal(ctx, (&subscriber{cmd: cmd, flags: f, in: in}).run(ctx))
}

// endedBySignal makes the end by signal a success: it is how one stops this verb.
func endedBySignal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// request makes patterns of the arguments with a wildcard, and types of the others.
func (f *subFlags) request(args []string) (in ipcclient.Subscribe, err error) {
	in.SubscriberID = f.subscriber
	for _, name := range args {
		switch {
		case f.exact || !strings.ContainsAny(name, "*>"):
			in.EventTypes = append(in.EventTypes, name)
		case !bus.ValidPattern(name):
			return in, cli.Errorf(cli.CodeUsage, "cannot subscribe to %q: * and > are whole tokens between dots, > the last one, of at most %d", name, bus.MaxPatternTokens).
				WithHint("'process.*' and 'toolhost.>' are patterns; --exact takes the name as it is")
		default:
			in.EventPatterns = append(in.EventPatterns, name)
		}
	}
	return in, nil
}

// subscriber is one run of sub: a subscription, which is opened again when its connection is lost.
type subscriber struct {
	cmd     *cobra.Command
	flags   *subFlags
	in      ipcclient.Subscribe
	conn    *ipcclient.Conn
	sub     *ipcclient.Subscription
	printed int
}

// errEnded is the end of a subscription by the server.
var errEnded = errors.New("the server ended the subscription")

func (s *subscriber) run(ctx context.Context) error {
	if err := s.open(ctx); err != nil {
		return s.explained(err)
	}
	defer func() { s.conn.Close() }() // the one of that time
	s.note("subscribed to %s as %s", s.what(), s.sub.Name)
	s.in.SubscriberID = s.sub.Name
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = firstRetry, lastRetry
	pace.Reset()
	for {
		opened := time.Now()
		err := s.print(ctx)
		if err == nil || ctx.Err() != nil || s.flags.noReconnect || lasting(err) {
			return s.explained(err)
		}
		s.conn.Close()
		lost := time.Now()
		if lost.Sub(opened) > lastRetry {
			pace.Reset()
		}
		s.note("warning: %v; reconnecting", err)
		if err := s.reopen(ctx, pace); err != nil {
			return s.explained(err)
		}
		s.note("warning: reconnected to %s after %s, the events of that time are missing here", s.flags.target, time.Since(lost).Round(time.Millisecond))
	}
}

// what counts types and patterns.
func (s *subscriber) what() string {
	text := fmt.Sprintf("%d event types", len(s.in.EventTypes))
	switch n := len(s.in.EventPatterns); {
	case n == 0:
		return text
	case len(s.in.EventTypes) > 0:
		text += " and "
	default:
		text = ""
	}
	text += fmt.Sprintf("%d pattern", len(s.in.EventPatterns))
	if len(s.in.EventPatterns) > 1 {
		text += "s"
	}
	return text
}

func (s *subscriber) note(format string, args ...any) {
	fmt.Fprintln(s.cmd.ErrOrStderr(), "trunkline: "+cli.Visible(fmt.Sprintf(format, args...)))
}

// open connects and subscribes. On an error there is no connection.
func (s *subscriber) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.flags.timeout)
	defer cancel()
	conn, err := s.flags.dial(ctx, s.cmd)
	if err != nil {
		return err
	}
	var sub *ipcclient.Subscription
	err = s.flags.ask(ctx, conn, func(ctx context.Context) error {
		sub, err = conn.Subscribe(ctx, s.in)
		return err
	})
	if err != nil {
		conn.Close()
		return err
	}
	s.conn, s.sub = conn, sub
	return nil
}

// reopen tries until it succeeds, or has an error that lasts.
func (s *subscriber) reopen(ctx context.Context, pace backoff.BackOff) error {
	for {
		select {
		case <-time.After(pace.NextBackOff()):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.open(ctx); err == nil || ctx.Err() != nil || lasting(err) {
			return err
		}
	}
}

// lasting reports whether another attempt would end in the same way: the request is refused, one
// side does not trust the other, or the peer is no server for this request. Everything that is no
// fault of the connection, such as a lost stdout, lasts too.
func lasting(err error) bool {
	var said *ipcclient.Error
	var untrusted *tls.CertificateVerificationError
	var op *net.OpError
	var lost *ipcclient.ConnError
	switch {
	case errors.As(err, &said):
		return !said.Retryable && said.Code != wire.Unavailable
	case errors.As(err, &untrusted), errors.Is(err, fs.ErrPermission), errors.Is(err, ipcclient.ErrProtocol):
		return true
	case errors.As(err, &op) && op.Op == "remote error": // an alert of TLS
		return true
	}
	return !errors.As(err, &lost) && !errors.Is(err, errEnded) && cli.Exit(err) != cli.CodeUnavailable
}

// explained gives an error its exit code and a hint.
func (s *subscriber) explained(err error) error {
	switch {
	case errors.Is(err, errEnded):
		return cli.Errorf(cli.CodeUnavailable, "%w", err).WithHint("it is shutting down, or another subscription took over this subscriber id")
	case errors.Is(err, ipcclient.ErrNoPatterns):
		return cli.Errorf(cli.CodeUsage, "cannot subscribe to patterns: %w", err).
			WithHint("list the types; kernel.Ping shows what the server knows")
	}
	return callError(s.flags.explain(err), request{info: methodOf("commbus", "Subscribe")})
}

// print prints events until as many as wanted are printed, or until an error.
func (s *subscriber) print(ctx context.Context) error {
	for event, err := range s.sub.All(ctx) {
		if err != nil {
			return err
		}
		shown, err := showEvent(s.cmd.OutOrStdout(), s.cmd.ErrOrStderr(), &event)
		if err != nil {
			return err
		}
		if s.printed += shown; s.printed == s.flags.count && shown > 0 {
			_ = s.sub.Close() // all that was asked for is printed
			return nil
		}
	}
	return errEnded
}

// showEvent prints an event as a line of out, or a gap mark as a warning to talk; shown
// is the number of lines.
func showEvent(out, talk io.Writer, e *ipcclient.Event) (shown int, err error) {
	if dropped, ok := ipcclient.Gap(e); ok {
		_, err := fmt.Fprintf(talk, "trunkline: warning: %d events are missing here, the server dropped them\n", dropped)
		return 0, err
	}
	return 1, writeEvent(out, e)
}

// writeEvent prints an event as one line; a payload that is no JSON becomes a string.
func writeEvent(w io.Writer, e *ipcclient.Event) error {
	line := jsonx.Build(nil).Text("event_type", e.EventType)
	if payload := []byte(e.Payload); jsonx.Check(payload, jsonx.MaxDepth).OK() {
		line = line.Raw("payload", jsonx.Compact(payload))
	} else {
		line = line.Text("payload", e.Payload)
	}
	return writeLine(w, line.Int("timestamp_ms", e.TimestampMS).Text("source", e.Source).End())
}
