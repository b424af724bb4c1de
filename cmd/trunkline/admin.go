package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ops"
)

// adminFlags name the admin endpoint of a server.
type adminFlags struct{ admin string }

// addAdmin adds --admin.
func (f *adminFlags) addAdmin(fs *pflag.FlagSet) {
	fs.StringVar(&f.admin, "admin", "", "admin endpoint, host:port (default that of the context, else admin.listen_addr)")
}

// adminAddr returns where to ask, "" for not at all.
func (f *adminFlags) adminAddr(cmd *cobra.Command) (string, error) {
	addr := f.admin
	if !cmd.Flags().Changed("admin") {
		r, err := findReach(cmd, fieldAdmin)
		if err != nil {
			return "", err
		}
		addr = r.Value
	}
	if addr != "" && (strings.HasPrefix(addr, "unix://") || config.CheckAddr(addr) != nil) {
		return "", cli.Errorf(cli.CodeUsage, "cannot ask %q: want host:port", addr).
			WithHint("--admin is an address like 127.0.0.1:50090, --admin= skips this part")
	}
	if chosenLater(addr) {
		return "", cli.Errorf(cli.CodeUsage, "cannot ask %s: port 0 is chosen when the server starts", addr).
			WithHint("the server prints its real address; name it with --admin")
	}
	return addr, nil
}

// adminQuery are the arguments of a verb that asks only the admin endpoint.
type adminQuery struct {
	adminFlags
	timeout time.Duration

	addr    string // once it is known
	standby string // what the server is in its cluster, unless it owns the journal; of the last answer
}

func (f *adminQuery) add(cmd *cobra.Command) {
	f.addAdmin(cmd.Flags())
	cmd.Flags().DurationVar(&f.timeout, "timeout", statusTimeout, "how long an answer may take")
	config.AddSourceFlags(cmd.Flags())
}

// find checks the flags and finds the address.
func (f *adminQuery) find(cmd *cobra.Command) (err error) {
	if f.timeout <= 0 {
		return cli.Errorf(cli.CodeUsage, "cannot use --timeout %s: it must be positive", f.timeout)
	}
	if f.addr, err = f.adminAddr(cmd); err == nil && f.addr == "" {
		err = cli.Errorf(cli.CodeUsage, "cannot ask a server without an admin endpoint").WithHint("--admin names it; admin.listen_addr is where a server has it")
	}
	return err
}

// ask decodes the answer at path within the timeout.
func (f *adminQuery) ask(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	header, err := getJSONHeader(ctx, f.addr, path, into)
	f.standby = benchview.Clean(header.Get(ops.StandbyHeader))
	return f.explain(err)
}

// noteStandby shows people what lists of a standby leave out.
func (f *adminQuery) noteStandby(cmd *cobra.Command) {
	if f.standby != "" && !cli.JSON(cmd) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trunkline: %s: what its clients do is seen at the owner\n", f.standby)
	}
}

// explain gives an error of the admin endpoint its exit code and a hint.
func (f *adminQuery) explain(err error) error {
	switch {
	case err == nil || errors.As(err, new(*cli.Error)):
		return err
	case errors.Is(err, errNoPath):
		return &cli.Error{Code: cli.CodeFailed, Err: err, Hint: "this is no admin endpoint, or one older than this question; --admin names another address"}
	}
	return &cli.Error{Code: cli.CodeUnavailable, Err: err, Hint: "is the server running? --admin names another address"}
}

// maxAdminBody bounds what is read of an answer: the longest list of connections takes a few
// megabytes.
const maxAdminBody = 16 << 20

// errNoPath: the server does not know the path.
var errNoPath = errors.New("no such path")

// getJSON decodes the body of an answer of either kind: 503 has one too.
func getJSON(ctx context.Context, addr, path string, into any) error {
	_, err := getJSONHeader(ctx, addr, path, into)
	return err
}

// getJSONHeader is getJSON and returns the header too.
func getJSONHeader(ctx context.Context, addr, path string, into any) (http.Header, error) {
	resp, err := getAdmin(ctx, addr, path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, fmt.Errorf("cannot ask %s%s: %w", addr, path, errNoPath)
	case http.StatusBadRequest:
		return nil, refused(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAdminBody)).Decode(into); err != nil {
		return nil, fmt.Errorf("cannot understand the answer of %s%s (%s): %w", addr, path, resp.Status, err)
	}
	return resp.Header, nil
}

// getAdmin asks the admin endpoint; the caller closes the body.
func getAdmin(ctx context.Context, addr, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask admin endpoint %q: %w", addr, err)
	}
	return doAdmin(addr, req)
}

// doAdmin sends a request to the admin endpoint; the caller closes the body.
func doAdmin(addr string, req *http.Request) (*http.Response, error) {
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("cannot reach admin endpoint %s: %w", addr, err)
	}
	return resp, nil
}

// refusalCodes maps the status of a refusal to exit codes; all others are 1.
var refusalCodes = map[int]int{
	http.StatusBadRequest: cli.CodeUsage, http.StatusNotFound: cli.CodeNotFound, http.StatusForbidden: cli.CodeNotAllowed, http.StatusUnauthorized: cli.CodeNotAllowed,
	http.StatusConflict: cli.CodeConflict, http.StatusTooManyRequests: cli.CodeUnavailable, http.StatusServiceUnavailable: cli.CodeUnavailable,
}

// refused turns an answer that is no success into an error.
func refused(resp *http.Response) *cli.Error {
	var r ops.Refusal
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAdminBody)).Decode(&r); err != nil || r.Text == "" {
		r.Text = "the server answers with HTTP status " + resp.Status
	}
	code := refusalCodes[resp.StatusCode]
	if code == cli.CodeOK {
		code = cli.CodeFailed
	}
	return cli.Errorf(code, "%s", r.Text).WithHint(r.Hint)
}
