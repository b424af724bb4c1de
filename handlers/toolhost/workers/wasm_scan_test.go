package workers

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// many is n times the same.
func many(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// oneFunction is what a module needs for one function of code.
func oneFunction(locals, code string) string {
	return section(1, "\x60\x00\x00") + section(3, "\x00") + section(10, text(locals+code+"\x0b"))
}

// TestWasmScanLimits: each at its limit and one above.
func TestWasmScanLimits(t *testing.T) {
	f := func(sections, want string) {
		t.Helper()
		_, err := scanModule([]byte(wasmHeader + sections))
		switch {
		case want == "" && err != nil:
			t.Errorf("%v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
	value := func(n int) string { return text(strings.Repeat("\x7f", n)) }
	f(section(1, many(maxTypes, "\x60\x00\x00")...), "")
	f(section(1, many(maxTypes+1, "\x60\x00\x00")...), "4097 types, at most 4096")
	f(section(1, "\x60"+value(maxTypeValues)+value(maxTypeValues)), "")
	f(section(1, "\x60"+value(maxTypeValues+1)+"\x00"), "129 parameters, at most 128")
	f(section(1, "\x60\x00"+value(maxTypeValues+1)), "129 results, at most 128")
	f(section(2, many(maxImports, "\x00\x00\x00\x00")...), "")
	f(section(2, many(maxImports+1, "\x00\x00\x00\x00")...), "1025 imports, at most 1024")
	f(section(2, text("env")+text("memory")+"\x02\x00\x01"), "module[env] export[memory] is not a function")
	f(section(3, many(maxFunctions, "\x00")...), "")
	f(section(3, many(maxFunctions+1, "\x00")...), "65537 functions, at most 65536")
	f(section(4, "\x70\x00"+leb(maxTableEntries)), "")
	f(section(4, "\x70\x00"+leb(maxTableEntries+1)), "a table of 65537 entries, at most 65536")
	f(section(4, many(2, "\x70\x00\x01")...), "2 tables, at most 1")
	f(section(5, "\x00"+leb(wasmPages)), "")
	f(section(5, "\x00"+leb(wasmPages+1)), "a memory of 1025 pages, at most 1024")
	f(section(5, many(2, "\x00\x01")...), "2 memories, at most 1")
	f(section(5, "\x03\x01\x01"), "limits of kind 3") // shared
	f(section(6, many(maxGlobals, "\x7f\x00"+i32(0)+"\x0b")...), "")
	f(section(6, many(maxGlobals+1, "\x7f\x00"+i32(0)+"\x0b")...), "4097 globals, at most 4096")
	f(section(7, many(maxExports, "\x00\x00\x00")...), "")
	f(section(7, many(maxExports+1, "\x00\x00\x00")...), "65537 exports, at most 65536")
	f(section(9, many(maxSegments, "\x01\x00\x00")...), "")
	f(section(9, many(maxSegments+1, "\x01\x00\x00")...), "4097 element segments, at most 4096")
	f(section(9, "\x01\x00"+list(many(maxElements/2, "\x00")...), "\x05\x70"+list(many(maxElements/2, "\xd0\x70\x0b")...)), "")
	f(section(9, "\x01\x00"+list(many(maxElements/2, "\x00")...), "\x05\x70"+list(many(maxElements/2+1, "\xd0\x70\x0b")...)), "32769 elements, at most 32768")
	f(section(11, many(maxDataSegments, "\x01\x00")...), "")
	f(section(11, many(maxDataSegments+1, "\x01\x00")...), "524289 data segments, at most 524288")
	f(oneFunction("\x00", strings.Repeat("\x01", maxBody-2)), "")
	f(oneFunction("\x00", strings.Repeat("\x01", maxBody-1)), "function 0: 262145 bytes, at most 262144")
	f(oneFunction("\x01"+leb(maxValues)+"\x7f", ""), "")
	f(oneFunction("\x01"+leb(maxValues+1)+"\x7f", ""), "function 0: 4097 locals, at most 4096")
	f(oneFunction("\x02"+leb(1<<32-1)+"\x7f"+leb(1<<32-1)+"\x7f", ""), "function 0: 8589934590 locals, at most 4096")
	f(oneFunction("\x01"+leb(maxValues-2)+"\x7f", i32(0)+i32(0)+"\x1a\x1a"), "")
	f(oneFunction("\x01"+leb(maxValues-2)+"\x7f", i32(0)+i32(0)+i32(0)+"\x1a\x1a\x1a"), "function 0: 4097 values at once, at most 4096")
}

// TestWasmScanRefuses: what has no end, or another shape than it says.
func TestWasmScanRefuses(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		if _, err := scanModule([]byte(code)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f("", "no WebAssembly header")
	f("\x00asm\x02\x00\x00\x00", "no WebAssembly header")
	// Counts that the compiler would allocate for.
	const most = "\xff\xff\xff\xff\x0f"
	for id := 1; id <= 11; id++ {
		if id != sectionStart {
			f(wasmHeader+string(rune(id))+"\x05"+most, "4294967295 ")
		}
	}
	f(wasmHeader+"\x03\x02\x09\x00", "it ends too early")
	f(wasmHeader+"\x01"+most, "it ends too early")
	f(wasmHeader+"\x01\xff\xff\xff\xff\x1f", "a number that is none")
	f(wasmHeader+"\x01\x80\x80\x80\x80\x80\x00", "a number that is none")
	f(wasmHeader+section(7, text("x")+"\x00\x00")+section(1), "section 1 is unknown, or not in order")
	f(wasmHeader+section(4)+section(4), "section 4 is unknown, or not in order")
	f(wasmHeader+"\x0a\x01\x00\x0c\x01\x00", "section 12 is unknown, or not in order")
	f(wasmHeader+"\x0d\x01\x00", "section 13 is unknown, or not in order")
	f(wasmHeader+"\x03\x02\x00\x00", "section 3 is longer than what is in it")
	f(wasmHeader+section(1, "\x5f\x00\x00"), "a type that is not one of functions")
	f(wasmHeader+section(3, "\x00")+section(10), "1 functions have a type and 0 a body")
	f(wasmHeader+section(3, "\x00")+section(10, "\x02\x00\x0b"), "type 0 of 0")
	f(wasmHeader+section(9, "\x08"), "an element segment of kind 8")
	f(wasmHeader+section(11, "\x03"), "a data segment of kind 3")
	f(wasmHeader+section(6, "\x7f\x00\x20\x00\x0b"), "instruction 0x20 in a constant")
	body := func(code, want string) {
		t.Helper()
		f(wasmHeader+oneFunction("\x00", code), "function 0: "+want)
	}
	body("\x1a", "an operand is missing")
	body("\x02\x40\x1a\x0b", "an operand is missing")
	body(i32(0), "a block leaves 1 operands, not 0")
	body("\x02\x7f\x0b\x1a", "a block leaves 0 operands, not 1")
	body("\x0b", "there is code behind its end")
	body("\x02\x40", "it ends too early")
	body("\x02\x01\x0b", "type 1 of 1")
	body("\x10\x01", "a call of function 1 of 1")
	body("\x06", "instruction 0x6")
	body("\x12\x00", "instruction 0x12")
	body("\xfc\x12", "instruction 0xfc 18")
	body("\xfd\x80\x02", "instruction 0xfd 256")
	body("\x0e"+most, "4294967295 targets")
}

// TestWasmScanKeeps: what goes to the compiler has no custom section and a table with an end, and is else what came.
func TestWasmScanKeeps(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		s, err := scanModule([]byte(code))
		if err != nil || string(s.code) != want {
			t.Errorf("%q, %v, want %q", s.code, err, want)
		}
	}
	custom := section(0)[:1] + text(text("name")+"\xff\xff\xff\xff\x0f")
	f(wasmHeader+custom+section(1)+custom+section(12)[:1]+"\x01\x00"+custom, wasmHeader+section(1)+section(12))
	f(wasmHeader+section(4, "\x70\x00\x05"), wasmHeader+section(4, "\x70\x01\x05"+leb(maxTableEntries)))
	f(wasmHeader+section(4, "\x6f\x01\x05\x09"), wasmHeader+section(4, "\x6f\x01\x05\x09"))
	f(wasmHeader+section(4, "\x70\x01\x05"+leb(maxTableEntries+1)), wasmHeader+section(4, "\x70\x01\x05"+leb(maxTableEntries)))
	f(wasmHeader+section(4), wasmHeader+section(4))
	whole := wasmOf{code: write(), imports: []system{fdWrite, procExit}, data: okData}.String()
	f(whole, whole)
}

// TestWasmScanChooses: what is interpreted.
func TestWasmScanChooses(t *testing.T) {
	f := func(code string, want bool) {
		t.Helper()
		s, err := scanModule([]byte(wasmOf{code: code}.String()))
		if err != nil || s.interpret != want {
			t.Errorf("%.40q...: %v, %v", code, s.interpret, err)
		}
	}
	f(strings.Repeat(fill(1), maxBulk), false)
	f(strings.Repeat(fill(1), maxBulk+1), true)
	f(strings.Repeat("\x01", 1<<17), false)
	f(costly, true)
	f("\x02\x40"+i32(0)+"\x0e"+list(many(18_000, "\x00")...)+"\x00\x0b", true)
	f(strings.Repeat(i32(0), 3000)+strings.Repeat("\x03\x40"+i32(0)+"\x0d\x00\x0b", 1500)+strings.Repeat("\x1a", 3000), true)
	// Several functions, each of which would be compiled.
	loops := strings.Repeat("\x03\x40\x0b", 4000)
	f(loops, false)
	s, err := scanModule([]byte(wasmOf{code: loops, copies: 9}.String()))
	if err != nil || !s.interpret {
		t.Errorf("%v, %v", s.interpret, err)
	}
}

// FuzzScanModule: what is accepted is small enough for the compiler, and accepted again.
func FuzzScanModule(f *testing.F) {
	for _, code := range []string{wasmNoop, wasmLoop, wasmTrap, wasmLarge, wasmImport, wasmOf{
		code: write() + grow(1) + "\x1a" + fill(9), locals: 3, imports: []system{fdWrite, procExit}, table: "\x70\x00\x01", data: okData, copies: 2,
	}.String(), wasmHeader + section(9, "\x01\x00\x01\x00", "\x05\x70\x01\xd0\x70\x0b", "\x06\x00\x41\x00\x0b\x70\x00")} {
		f.Add([]byte(code))
	}
	files, _ := filepath.Glob("testdata/*.wasm")
	for _, name := range files {
		if code, err := os.ReadFile(name); err == nil {
			f.Add(code)
		}
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(wasmPages).WithDebugInfoEnabled(false))
	f.Cleanup(func() { _ = r.Close(ctx) })
	f.Fuzz(func(t *testing.T, code []byte) {
		s, err := scanModule(code)
		if err != nil {
			return
		}
		if again, err := scanModule(s.code); err != nil || !bytes.Equal(again.code, s.code) || again.interpret != s.interpret {
			t.Fatalf("%q is read as %q, and that as %q, %v", code, s.code, again.code, err)
		}
		if compiled, err := r.CompileModule(ctx, s.code); err == nil {
			_ = compiled.Close(ctx)
		}
	})
}
