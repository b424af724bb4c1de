package workers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

// trapCode is the exit code of a module that ran into a trap: that of a program that was aborted.
const trapCode = 128 + 6

// childMemory is what the collector of a child keeps its memory under, if it can.
const childMemory = 256 << 20

// A process that was started to run a module does that, and nothing else of the binary: see
// workerexec.
func init() {
	argv := workerexec.Stays()
	if len(argv) != 3 {
		return
	}
	os.Exit(runChild(argv[0], argv[1], argv[2]))
}

// runChild is the whole life of a child: it compiles the module, reports it, and answers requests
// as any kept worker. A call that fails ends it, with the exit code of the module.
func runChild(path, sum, folder string) (code int) {
	debug.SetMemoryLimit(childMemory)
	status := os.NewFile(workerexec.StatusFD, "status")
	m, err := loadModule(path, sum, folder)
	said := moduleReady
	switch {
	case err != nil:
		said = report(err)
	case m.kept:
		said = moduleKept
	}
	_, _ = io.WriteString(status, said) // fails if the server has gone
	if err != nil {
		return 1
	}
	_ = status.Close() // only written
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		reply, code := m.answer(line)
		if code != 0 {
			return code
		}
		if _, err := os.Stdout.Write(append(reply, '\n')); err != nil {
			return 1
		}
	}
}

var requestNames = jsonx.NewNames("aid")

// answer runs one call in an instance of its own. code is not 0 if it failed.
func (m *module) answer(line []byte) (reply []byte, code int) {
	var aid [1]jsonx.Member
	_, _ = requestNames.Scan(line, maxDepth, aid[:]) // the server made it
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := capped{full: func() {
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{'x'}, maxReply+len("\r\n"))) // too long
		os.Exit(1)
	}}
	streams := wazero.NewModuleConfig().WithName("").WithArgs(string(jsonx.AppendUnescaped(nil, aid[0].Raw))).
		WithStdin(bytes.NewReader(line)).WithStdout(&out).WithStderr(os.Stderr).
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime().
		WithNanosleep(func(ns int64) { time.Sleep(time.Duration(ns)) })
	ran, err := m.runtime.InstantiateModule(ctx, m.code, streams)
	if ran != nil {
		_ = ran.Close(ctx) // its memory; nothing was written to it that could be lost
	}
	exit := (*sys.ExitError)(nil)
	switch {
	case err == nil:
	case errors.As(err, &exit):
		if code := int(exit.ExitCode()); code != 0 {
			return nil, max(code&0xff, 1)
		}
	default:
		fmt.Fprint(os.Stderr, err)
		return nil, trapCode
	}
	return oneLine(out.buf), 0
}

// oneLine returns what a module wrote as a line. A text that is no reply is none as a line either.
func oneLine(text []byte) []byte {
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\r'})
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	ok := jsonx.Check(text, maxDepth).OK()
	text = bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
	if !ok {
		return append([]byte("not JSON: "), text...)
	}
	return text
}

// capped keeps what an instance writes to stdout, up to a reply and its end; more ends the process.
type capped struct {
	buf  []byte
	full func()
}

// Write takes all of p or, if that would be too much, nothing.
func (o *capped) Write(p []byte) (int, error) {
	if len(o.buf)+len(p) > maxReply+len("\r\n") {
		o.full()
		return 0, io.ErrShortWrite
	}
	o.buf = append(o.buf, p...)
	return len(p), nil
}

const maxModuleBytes = 16 << 20

// wasmPages is the memory of an instance: 64 MiB in pages of 64 KiB (toolhost §4.9).
const wasmPages = 1024

var errModule = errors.New("not a module that can be run")

type module struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	kept    bool // its code is in the folder
}

// loadModule makes code of a file of a SHA-256, or any; folder, if any, has what was compiled.
func loadModule(path, sum, folder string) (*module, error) {
	code, err := readModule(path)
	if err != nil {
		return nil, err
	}
	if have := sha256.Sum256(code); sum != "" && hex.EncodeToString(have[:]) != sum {
		return nil, errHash
	}
	return compileModule(code, folder)
}

// readModule returns what is in a regular file. Anything else may have no end.
func readModule(path string) ([]byte, error) {
	f, info, err := tool.OpenRegular(path)
	switch {
	case errors.Is(err, tool.ErrNotRegular):
		return nil, fmt.Errorf("%w: %w", errModule, err)
	case err != nil:
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if info.Size() > maxModuleBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errModule, info.Size(), maxModuleBytes)
	}
	code, err := io.ReadAll(io.LimitReader(f, maxModuleBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errModule, err)
	}
	if len(code) > maxModuleBytes { // it has grown
		return nil, fmt.Errorf("%w: more than %d bytes", errModule, maxModuleBytes)
	}
	return code, nil
}

// compileModule compiles what was read. A fault of the compiler is the module's.
func compileModule(text []byte, folder string) (m *module, err error) {
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(wasmPages).WithDebugInfoEnabled(false)
	if folder != "" {
		kept, err := wazero.NewCompilationCacheWithDir(folder)
		if err != nil {
			return compileModule(text, "")
		}
		config = config.WithCompilationCache(kept)
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %v", errModule, fault)
		}
		if err != nil {
			m = nil
			_ = r.Close(ctx) // nothing runs in it
		}
	}()
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errModule, err)
	}
	code, err := r.CompileModule(ctx, text)
	var unkept *fs.PathError
	switch {
	case errors.Is(err, syscall.EFBIG):
		return nil, fmt.Errorf("%w: its compiled code is larger than it may be", errModule)
	case folder != "" && errors.As(err, &unkept): // a full disk is no fault of the module
		_ = r.Close(ctx)
		return compileModule(text, "")
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errModule, err)
	}
	if err := checkImports(r, code); err != nil {
		return nil, fmt.Errorf("%w: %w", errModule, err)
	}
	return &module{runtime: r, code: code, kept: folder != ""}, nil
}

// checkImports looks for what the module imports. What fails later, fails in the module's own code.
func checkImports(r wazero.Runtime, code wazero.CompiledModule) error {
	exports := r.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions()
	for _, f := range code.ImportedFunctions() {
		from, name, _ := f.Import()
		have := exports[name]
		switch {
		case from != wasi_snapshot_preview1.ModuleName:
			return fmt.Errorf("there is no module[%s] to import %s of", from, name)
		case have == nil:
			return fmt.Errorf("there is no function %s in module[%s]", name, from)
		case !slices.Equal(have.ParamTypes(), f.ParamTypes()) || !slices.Equal(have.ResultTypes(), f.ResultTypes()):
			return fmt.Errorf("function %s of module[%s] has another type", name, from)
		}
	}
	return nil
}
