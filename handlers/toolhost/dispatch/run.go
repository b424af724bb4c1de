package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	// DefaultTimeout is how long a call may take when nobody says otherwise (toolhost §6).
	DefaultTimeout = 30 * time.Second
	// MaxOutput is how many bytes of what the program writes to stdout count, those in front (toolhost §4.11).
	MaxOutput = 1 << 20

	timeoutName = "MACHINA_TOOLHOST_TIMEOUT"
	rootName    = "MACHINA_ROOT"
)

// Config says what is run. The zero value is that of the Python layer. It may be copied, and used by any number of goroutines.
type Config struct {
	// Root is the program's working directory. Empty: MACHINA_ROOT of the environment, else the caller's working directory.
	Root string
	// Binary is the program; a relative path is taken from Root. Empty: build/machina_cli.
	Binary string
	// Timeout bounds a call, from start to end. 0: MACHINA_TOOLHOST_TIMEOUT of the environment, in whole seconds, else DefaultTimeout.
	Timeout time.Duration
	// Env is the program's environment. nil: the caller's.
	Env []string
}

// Run calls Config.Run with the zero Config.
func Run(ctx context.Context, aid string, inputs any) (output string, err error) {
	return Config{}.Run(ctx, aid, inputs)
}

// Run runs one tool in a process of its own and waits for it. inputs is what encoding/json makes a JSON object of (a map, a struct,
// a json.RawMessage); nil is the empty object. output is the tool's output_json (toolhost §4.11).
//
// The error is a *ToolResult or a *tool.DispatchError; the latter is wrapped together with the error of ctx if that ended the
// call. When Run returns, the process is gone, and every process of its group. It blocks, allocates, and shares nothing with
// other calls.
func (c Config) Run(ctx context.Context, aid string, inputs any) (output string, err error) {
	input, err := object(inputs)
	if err != nil {
		return "", broken(aid, tool.Exception, err.Error())
	}
	p, err := c.program(aid)
	if err != nil {
		return "", broken(aid, tool.Exception, err.Error())
	}
	out := p.run(ctx, appendRequest(nil, input))
	if out.kind != "" {
		err = broken(aid, out.kind, out.detail)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
		return "", err
	}
	return judge(aid, out.stdout)
}

// appendRequest appends the body that the Python layer sends (toolhost §2.1).
func appendRequest(dst, input []byte) []byte {
	dst = append(dst, `{"input_json":`...)
	dst = jsonx.AppendString(dst, input)
	return append(dst, `,"ds_state":{"slots":{}}}`+"\n"...)
}

var errNoObject = errors.New("inputs are not a JSON object")

// object returns the JSON object that inputs are, compact.
func object(inputs any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(inputs); err != nil {
		return nil, fmt.Errorf("cannot encode inputs: %w", err)
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if string(text) == "null" {
		return []byte("{}"), nil
	}
	if text[0] != '{' {
		return nil, errNoObject
	}
	return text, nil
}

// program resolves the defaults.
func (c Config) program(aid string) (p program, err error) {
	if c.Root == "" {
		c.Root = os.Getenv(rootName)
	}
	if c.Root, err = filepath.Abs(c.Root); err != nil {
		return program{}, err
	}
	if c.Binary == "" {
		c.Binary = filepath.Join("build", "machina_cli")
	}
	if !filepath.IsAbs(c.Binary) {
		c.Binary = filepath.Join(c.Root, c.Binary)
	}
	return program{path: c.Binary, args: []string{"tool_exec", aid}, dir: c.Root, env: c.Env, timeout: c.timeout()}, nil
}

func (c Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	// A number that does not parse means the default (toolhost §6).
	if n, err := strconv.Atoi(os.Getenv(timeoutName)); err == nil && n > 0 && n <= int(time.Duration(1<<63-1)/time.Second) {
		return time.Duration(n) * time.Second
	}
	return DefaultTimeout
}

func broken(aid string, kind tool.DispatchType, detail string) error {
	return &tool.DispatchError{AID: aid, Type: kind, Detail: detail}
}
