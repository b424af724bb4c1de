package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"trunkline/cmd/trunkline/internal/config"
)

// unitFiles is where the files for systemd are.
const unitFiles = "../../deploy/systemd"

// unit is a parsed unit file: the values of each directive, by section and name.
type unit map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(unitFiles, name))
	if err != nil {
		t.Fatal(err)
	}
	u, section := unit{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		key, value, pair := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case !pair || section == "":
			t.Errorf("%s: %q is no directive", name, line)
		default:
			u[section+"."+key] = append(u[section+"."+key], value)
		}
	}
	return u
}

func TestUnitOfTheService(t *testing.T) {
	u := readUnit(t, "trunkline.service")
	for key, want := range map[string]string{
		"Service.Type": "notify", "Service.ExecReload": "/bin/kill -HUP $MAINPID", "Service.WatchdogSec": "30", "Service.DynamicUser": "yes", "Service.StateDirectory": "trunkline",
		"Service.NoNewPrivileges": "yes", "Service.ProtectSystem": "strict", "Service.ProtectHome": "yes", "Service.PrivateTmp": "yes",
		"Service.PrivateDevices": "yes", "Service.RestrictSUIDSGID": "yes", "Service.CapabilityBoundingSet": "", "Service.SystemCallArchitectures": "native",
		"Service.KillMode": "mixed", "Service.Restart": "on-failure",
	} {
		if got := u[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	command := strings.Fields(u["Service.ExecStart"][0])
	cmd, rest, err := newRootCmd().Find(command[1:])
	if err != nil || cmd.Name() != "serve" || cmd.ParseFlags(rest) != nil {
		t.Errorf("%q: %v", command, err)
	}
	for _, name := range dropIns {
		d := readUnit(t, name)
		var ids []string
		for _, c := range d["Service.LoadCredential"] {
			id, _, _ := strings.Cut(c, ":")
			ids = append(ids, "%d/"+id)
		}
		for _, e := range append(d["Service.Environment"], u["Service.Environment"]...) {
			name, value, _ := strings.Cut(e, "=")
			if name == "GOMEMLIMIT" {
				continue // read by the Go runtime
			}
			if strings.HasPrefix(value, "%d/") && !slices.Contains(ids, value) {
				t.Errorf("%s: there is no such credential", e)
			}
			if _, err := config.Load(newServeCmd().Flags(), []string{name + "=x"}); err != nil && strings.Contains(err.Error(), "unknown setting") {
				t.Errorf("%s: %v", e, err)
			}
		}
	}
}

// dropIns are examples of what is added to the unit of the service.
var dropIns = []string{"tls.conf", "cluster.conf", "memory.conf", "notify-reload.conf", "threads.conf"}

// TestMemoryOfTheUnit: the heap gets nine tenths of what the unit may take.
func TestMemoryOfTheUnit(t *testing.T) {
	u := readUnit(t, "memory.conf")
	limit, err := strconv.Atoi(strings.TrimSuffix(u["Service.MemoryMax"][0], "G"))
	if want := []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", limit*1024*9/10)}; err != nil || !slices.Equal(u["Service.Environment"], want) {
		t.Errorf("%v: %v, want %v", err, u, want)
	}
}

// TestUnitOfANode: the settings of the example fit together.
func TestUnitOfANode(t *testing.T) {
	environ := readUnit(t, "cluster.conf")["Service.Environment"]
	t.Chdir(t.TempDir()) // no settings file
	c, err := config.Load(newServeCmd().Flags(), environ)
	if err != nil {
		t.Fatal(err)
	}
	if l := &c.Cluster; l.ElectionTimeout*2 > l.Lease || l.SecretFile == "" {
		t.Errorf("%+v", l)
	}
}

// TestUnitsOfSockets: the names are settings, and the addresses those that a server has by default.
func TestUnitsOfSockets(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(unitFiles, "*.socket"))
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	units := map[string]unit{}
	for _, name := range names {
		units[name] = readUnit(t, filepath.Base(name))
	}
	t.Chdir(t.TempDir()) // no settings file
	c, err := config.Load(newServeCmd().Flags(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]any{}
	for _, r := range c.Rows() {
		defaults[r.Key] = r.Value
	}
	for name, u := range units {
		key := u["Socket.FileDescriptorName"][0]
		if !config.IsAddress(key) || defaults[key] != u["Socket.ListenStream"][0] || u["Socket.Service"][0] != "trunkline.service" {
			t.Errorf("%s: %v, the default is %v", name, u, defaults[key])
		}
	}
}

// TestSystemdTakesTheUnits has systemd look at copies, which name a program that is there.
func TestSystemdTakesTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	out, err := exec.Command(analyze, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, _ := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(string(out)))
	dir := t.TempDir()
	files, err := os.ReadDir(unitFiles)
	if err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(unitFiles, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		program, err := filepath.Abs(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		copied := strings.Replace(string(text), "/usr/bin/trunkline", program, 1)
		if version < 253 && f.Name() == "notify-reload.conf" {
			continue // it is for newer ones; all others are for this one as well
		}
		to := filepath.Join(dir, f.Name())
		if slices.Contains(dropIns, f.Name()) {
			to = filepath.Join(dir, "trunkline.service.d", f.Name())
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			units = append(units, to)
		}
		if err := os.WriteFile(to, []byte(copied), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	if err != nil || strings.Contains(string(said), dir) {
		t.Errorf("%v\n%s", err, said)
	}
}
