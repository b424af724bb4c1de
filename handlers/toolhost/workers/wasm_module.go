package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"
)

// maxModuleBytes is the largest module that is looked at. Much of what compilers make is names and debug information.
const maxModuleBytes = 16 << 20

// wasmPages is the memory of an instance: 64 MiB in pages of 64 KiB (toolhost §4.9).
const wasmPages = 1024

// errModule is the error of a file that cannot be run.
var errModule = errors.New("not a module that can be run")

// module is code that can be run, and the runtime it belongs to.
type module struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	kept    bool // its code is in the folder
}

// loadModule makes code of a file whose SHA-256 is sum in lower-case hex, any if that is "". What
// was compiled before is in folder, if that is not "".
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

// readModule returns what is in a regular file. Anything else may have no end, or not even a
// beginning: opened without waiting, it is refused before it is read.
func readModule(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errModule, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %w", errModule, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")})
	case info.Size() > maxModuleBytes:
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
