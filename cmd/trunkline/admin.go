package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/handlers/ops"
)

// adminFlags name the admin endpoint of a server, and the file with the token for it.
type adminFlags struct {
	admin, tokenFile string
	operator         bool // the token is to be that of an operator
}

// adminServer is an admin endpoint: where it is, and the token that it is shown, "" for none.
type adminServer struct{ addr, token string }

// addAdmin adds --admin and --token-file.
func (f *adminFlags) addAdmin(fs *pflag.FlagSet) {
	fs.StringVar(&f.admin, "admin", "", "admin endpoint, host:port (default that of the context, else admin.listen_addr)")
	fs.StringVar(&f.tokenFile, "token-file", "",
		"file with the token for it (default that of the context, else "+
			"admin.console_token_file or admin.console_operator_token_file)")
}

// endpoint returns what to ask, with the token; an empty address is for not at all. The token of
// the context, or of the settings, is shown only to the address of the same.
func (f *adminFlags) endpoint(cmd *cobra.Command) (s adminServer, err error) {
	var at reach
	if s.addr, at, err = f.where(cmd); err != nil || s.addr == "" {
		return s, err
	}
	file := f.tokenFile
	switch {
	case file != "" || cmd.Flags().Changed("admin"):
	case at.fromContext():
		c, err := chosenContext()
		if err != nil {
			return s, err
		}
		file = c.ConsoleTokenFile
	default:
		c, err := config.Load(cmd.Flags(), os.Environ()) // its warnings were shown with the address
		if err != nil {
			return s, err
		}
		if file = c.Admin.ConsoleOperatorTokenFile; !f.operator {
			file = cmp.Or(c.Admin.ConsoleTokenFile, file)
		}
	}
	s.token, err = readToken(file)
	return s, err
}

// where returns where to ask, "" for not at all, and what named it if no flag did.
func (f *adminFlags) where(cmd *cobra.Command) (addr string, r reach, err error) {
	addr = f.admin
	if !cmd.Flags().Changed("admin") {
		if r, err = findReach(cmd, fieldAdmin); err != nil {
			return "", r, err
		}
		addr = r.Value
	}
	if addr != "" && (strings.HasPrefix(addr, "unix://") || config.CheckAddr(addr) != nil) {
		return "", r, cli.Errorf(cli.CodeUsage, "cannot ask %q: want host:port", addr).
			WithHint("--admin is an address like 127.0.0.1:50090, --admin= skips this part")
	}
	if chosenLater(addr) {
		return "", r, cli.Errorf(cli.CodeUsage, "cannot ask %s: port 0 is chosen when the server starts", addr).
			WithHint("the server prints its real address; name it with --admin")
	}
	return addr, r, nil
}

// adminQuery are the arguments of a verb that asks only the admin endpoint.
type adminQuery struct {
	adminFlags
	adminServer // once it is known
	timeout     time.Duration

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
	if f.adminServer, err = f.endpoint(cmd); err == nil && f.addr == "" {
		err = cli.Errorf(cli.CodeUsage, "cannot ask a server without an admin endpoint").WithHint("--admin names it; admin.listen_addr is where a server has it")
	}
	return err
}

// ask decodes the answer at path within the timeout.
func (f *adminQuery) ask(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	header, err := f.getJSONHeader(ctx, path, into)
	f.standby = cli.Visible(header.Get(ops.StandbyHeader))
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
func (s adminServer) getJSON(ctx context.Context, path string, into any) error {
	_, err := s.getJSONHeader(ctx, path, into)
	return err
}

// getJSONHeader is getJSON and returns the header too.
func (s adminServer) getJSONHeader(ctx context.Context, path string, into any) (http.Header, error) {
	resp, err := s.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		var said ops.Refusal
		if json.NewDecoder(io.LimitReader(resp.Body, maxAdminBody)).Decode(&said) == nil && said.Text != "" {
			return nil, cli.Errorf(cli.CodeNotFound, "%s", said.Text).WithHint(said.Hint)
		}
		return nil, fmt.Errorf("cannot ask %s%s: %w", s.addr, path, errNoPath)
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return nil, refused(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAdminBody)).Decode(into); err != nil {
		return nil, fmt.Errorf("cannot understand the answer of %s%s (%s): %w", s.addr, path, resp.Status, err)
	}
	return resp.Header, nil
}

// do sends a request to the admin endpoint, with a form where there is one; the caller closes the
// body.
func (s adminServer) do(ctx context.Context, method, path string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("cannot ask admin endpoint %q: %w", s.addr, err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("cannot reach admin endpoint %s: %w", s.addr, err)
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
	if resp.StatusCode == http.StatusUnauthorized {
		r.Hint = "--token-file names the file with the token: admin.console_token_file or admin.console_operator_token_file of the server"
	}
	return cli.Errorf(code, "%s", r.Text).WithHint(r.Hint)
}
