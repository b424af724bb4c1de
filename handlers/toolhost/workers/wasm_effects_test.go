package workers

import (
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// kinds are the types of values that instructions take.
const kinds = "\x7f\x7e\x7d\x7c\x7b"

// operands calls fn with every list of up to three types.
func operands(fn func(types string)) {
	lists := []string{""}
	for range 4 {
		var longer []string
		for _, l := range lists {
			fn(l)
			for _, k := range kinds {
				longer = append(longer, l+string(k))
			}
		}
		lists = longer
	}
}

// TestWasmEffects asks the compiler for every instruction with fixed operands whether it takes and leaves what effects say: what it accepts
// with some operands must pass the scan with them.
func TestWasmEffects(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = r.Close(ctx) }()
	known := 0
	f := func(instruction string) {
		t.Helper()
		found := false
		operands(func(types string) {
			if found {
				return
			}
			var code strings.Builder
			for _, k := range []byte(types) {
				code.WriteString(zero(k))
			}
			code.WriteString(instruction)
			for _, leaves := range []string{"", "\x1a"} {
				module := wasmOf{code: code.String() + leaves, locals: 1, table: "\x70\x00\x01"}.String()
				compiled, err := r.CompileModule(ctx, []byte(module))
				if err != nil {
					continue
				}
				_ = compiled.Close(ctx)
				found = true
				if _, err := scanModule([]byte(module)); err != nil {
					t.Errorf("instruction %q with operands %q and %d results: %v", instruction, types, len(leaves), err)
				}
			}
		})
		if found {
			known++
		}
	}
	lanes, address := "\x00", "\x00\x00"
	for op := range 256 {
		switch {
		case op >= 0x28 && op <= 0x3e:
			f(string([]byte{byte(op)}) + address)
		case op == 0x3f || op == 0x40:
			f(string([]byte{byte(op)}) + "\x00")
		case op == 0x01 || op == 0x1a || op == 0x1b || op >= 0x45 && op <= 0xc4:
			f(string([]byte{byte(op)}))
		}
		vector := "\xfd" + leb(op)
		switch {
		case op <= 11 || op == 92 || op == 93:
			vector += address
		case op == 12 || op == 13:
			vector += strings.Repeat("\x00", 16)
		case op >= 21 && op <= 34:
			vector += lanes
		case op >= 84 && op <= 91:
			vector += address + lanes
		}
		f(vector)
	}
	for op := range 8 {
		f("\xfc" + leb(op))
	}
	for _, op := range []string{"\x20\x00", "\x21\x00", "\x22\x00", "\x25\x00", "\xd0\x70\xd1", "\xfc\x0a\x00\x00", "\xfc\x0b\x00", "\xd0\x70" + i32(1) + "\xfc\x0f\x00", "\xfc\x10\x00", "\xfc\x0e\x00\x00"} {
		f(op)
	}
	// Those of WebAssembly 2.0: 156 of one byte, 8 and 236 behind a prefix, and the ten.
	if known != 156+8+236+10 {
		t.Errorf("%d instructions are known to the compiler", known)
	}
}
