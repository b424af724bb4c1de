package tools

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// toolJSON is an entry of the manifest (toolhost §4.10).
const toolJSON = `{"aid":%q,"name":%q,"deterministic":false,"tags":["tag.bench"],"estimate_model":{"mode":"ConservativeBound"},` +
	`"inputs_schema":{},"outputs_schema":{},"side_effects":["none"],"exec":%s}`

// pythonTool is the external tool in the language of most tools.
//
//go:embed worker/worker.py
var pythonTool []byte

// findPython looks for the interpreter itself: what the PATH has may be a script that looks for it
// at every start. Empty means that there is none.
func findPython() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) writeManifest() error {
	b.python = findPython()
	process := func(mode string, command ...string) string {
		list, _ := json.Marshal(command) // strings always can be
		return fmt.Sprintf(`{"kind":"process","command":%s,"mode":%q}`, list, mode)
	}
	tools := []string{
		fmt.Sprintf(toolJSON, echoAID, "echo", `{"kind":"builtin","name":"`+echoAID+`"}`),
		fmt.Sprintf(toolJSON, keptAID, "kept", process("serve", b.worker)),
		fmt.Sprintf(toolJSON, perCallAID, "once", process("oneshot", b.worker)),
	}
	if b.python != "" {
		script := filepath.Join(b.Rig.Dir, "worker.py")
		if err := os.WriteFile(script, pythonTool, 0o600); err != nil {
			return fmt.Errorf("cannot write the tool: %w", err)
		}
		tools = append(tools, fmt.Sprintf(toolJSON, keptPyAID, "kept python3", process("serve", b.python, script)),
			fmt.Sprintf(toolJSON, oncePyAID, "python3 once", process("oneshot", b.python, script)))
	}
	text := `{"toolpack_id":"toolpack.bench","toolpack_version":"1","trust_tier":"tier0_builtin","tools":[` + strings.Join(tools, ",") + "]}"
	b.manifest = filepath.Join(b.Rig.Dir, "bench.json")
	if err := os.WriteFile(b.manifest, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write the manifest: %w", err)
	}
	return nil
}
