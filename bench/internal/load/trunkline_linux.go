package load

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Trunkline returns how to start the server under test on free ports, with settings given as
// key=value: a throw-away instance, in store.mode memory. A setting or the environment
// (TRUNKLINE_STORE_MODE) may ask for a mode that keeps state; then it is in store.dir where a
// setting or the environment names one, else in a temporary directory of that server.
func Trunkline(path string, settings ...string) Command {
	c := Command{Name: "trunkline", Path: path, Args: []string{"serve", "--dev"}, Listening: trunklineListening}
	if mode := named("store.mode", settings); mode != "" && mode != "memory" {
		// What --dev is beside its store.mode.
		c.Args = []string{"serve", "--log-format", "text", "--set", "admin.pprof=true"}
		c.TempStore = named("store.dir", settings) == ""
	}
	for _, kv := range append([]string{"kernel.listen_addr=127.0.0.1:0", "http.listen_addr=127.0.0.1:0",
		"admin.listen_addr=127.0.0.1:0", "threads.listen_addr=", "threads.lines_addr="}, settings...) {
		c.Args = append(c.Args, "--set", kv)
	}
	return c
}

// named returns what the server will find for key among the settings, of which the last one counts,
// or in the environment; empty if it is not named.
func named(key string, settings []string) string {
	for _, kv := range slices.Backward(settings) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return os.Getenv("TRUNKLINE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")))
}

// tempStore makes the directory that TempStore asks for and names it in c's arguments. It returns
// "" if none is asked for.
func (c *Command) tempStore() (string, error) {
	if !c.TempStore {
		return "", nil
	}
	dir, err := os.MkdirTemp(c.TempDir, "trunkline-store-")
	if err != nil {
		return "", fmt.Errorf("cannot make a directory for its store: %w", err)
	}
	c.Args = append(slices.Clip(c.Args), "--set", "store.dir="+dir)
	return dir, nil
}

func (s *Server) removeTemp() {
	if s.temp != "" {
		_ = os.RemoveAll(s.temp) // in a directory for what may stay behind
	}
}
