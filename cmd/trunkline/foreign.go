package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ipc/ipcclient"
)

// suspectAfter is how long a server may send nothing before it is asked whether it speaks another
// protocol: servers of HTTP and of lines wait for the rest of what a frame looks like to them.
const suspectAfter = time.Second

// errSilent is a timeout of a server that sent not a single frame.
var errSilent = errors.New("the server sent nothing")

// ask runs do, whose requests go to conn. It ends early with a ipcclient.Foreign when the server is
// silent and turns out to speak another protocol.
func (f *peerFlags) ask(ctx context.Context, conn *ipcclient.Conn, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var probe sync.WaitGroup
	probe.Add(1)
	timer := time.AfterFunc(suspectAfter, func() {
		defer probe.Done()
		if conn.Heard() {
			return
		}
		if other := f.probe(ctx); other != "" {
			cancel(other)
		}
	})
	err := do(ctx)
	cause := context.Cause(ctx)
	cancel(nil)
	if timer.Stop() {
		probe.Done()
	}
	probe.Wait()
	var other ipcclient.Foreign
	switch {
	case err != nil && errors.As(cause, &other):
		return other
	case errors.Is(err, context.DeadlineExceeded) && !conn.Heard():
		return errors.Join(errSilent, err)
	}
	return err
}

// probe asks the server in HTTP.
func (f *peerFlags) probe(ctx context.Context) ipcclient.Foreign {
	cfg, err := f.tls()
	if err != nil {
		return ""
	}
	return ipcclient.Probe(ctx, f.target, ipcclient.WithTLS(cfg))
}

// settingsHere are the settings that a server would start with here; none if they are not valid.
func settingsHere(cmd *cobra.Command) []config.Row {
	c, err := loadConfig(cmd)
	if err != nil {
		return nil
	}
	return c.Rows()
}

// foreignHint names the listener that was met by the settings here, and the one that was meant.
func (f *peerFlags) foreignHint(other ipcclient.Foreign) string {
	if other == ipcclient.TLS {
		return "--tls-ca names the certificates to trust and switches TLS on, --tls-cert and --tls-key are what to show"
	}
	met, meant := "", "another address"
	for _, row := range settingsHere(f.cmd) {
		addrs := addresses(row.Value)
		if row.Key == "kernel.listen_addr" && !chosenLater(addrs[0]) && !slices.Contains(addrs, f.target) {
			meant = addrs[0] + ", where the settings have kernel IPC"
		}
		if strings.HasSuffix(row.Key, "_addr") && slices.Contains(addrs, f.target) {
			met = row.Key + " is " + f.target + "; "
		}
	}
	return met + "--addr or $" + envAddr + " names " + meant
}

// addresses returns the value of a setting as addresses.
func addresses(value any) []string {
	text, _ := value.(string)
	return strings.Split(text, ",")
}
