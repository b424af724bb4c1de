package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/config"
)

const imageFile = "../../deploy/docker/Dockerfile"

// imageSpec is what a Dockerfile makes, as far as ours goes.
type imageSpec struct {
	from, user, workdir            string
	env                            map[string]string
	volumes, ports                 []string
	entrypoint, command, healthcmd []string
	copies                         [][]string
	other                          []string
}

// parseImage reads a Dockerfile whose commands are in the form of a JSON array.
func parseImage(t *testing.T, text string) (m imageSpec) {
	t.Helper()
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	array := func(s string) (words []string) {
		if err := json.Unmarshal([]byte(s), &words); err != nil {
			t.Errorf("not an array of words, so that it would need a shell: %s", s)
		}
		return words
	}
	m.env = map[string]string{}
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch verb {
		case "":
		case "FROM":
			m.from = rest
		case "USER":
			m.user = rest
		case "WORKDIR":
			m.workdir = rest
		case "ENV":
			name, value, _ := strings.Cut(rest, "=")
			m.env[name] = value
		case "VOLUME":
			m.volumes = array(rest)
		case "EXPOSE":
			m.ports = strings.Fields(rest)
		case "ENTRYPOINT":
			m.entrypoint = array(rest)
		case "CMD":
			m.command = array(rest)
		case "HEALTHCHECK":
			_, words, _ := strings.Cut(rest, "CMD ")
			m.healthcmd = array(words)
		case "COPY":
			m.copies = append(m.copies, strings.Fields(rest))
		default:
			m.other = append(m.other, verb)
		}
	}
	return m
}

func readImage(t *testing.T) imageSpec {
	t.Helper()
	text, err := os.ReadFile(imageFile)
	if err != nil {
		t.Fatal(err)
	}
	return parseImage(t, string(text))
}

// defaultSettings returns the settings of a program that nothing is set for.
func defaultSettings(t *testing.T, environ ...string) *config.Config {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	c, err := config.Load(fs, environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestImage holds the image to what it promises: nothing but the binary, no root, no network.
func TestImage(t *testing.T) {
	m := readImage(t)
	for _, verb := range m.other {
		if !slices.Contains([]string{"ARG", "LABEL", "STOPSIGNAL"}, verb) {
			t.Errorf("%s: it would need a shell or a network", verb)
		}
	}
	if m.from != "scratch" {
		t.Errorf("FROM %s: it would have to be fetched", m.from)
	}
	uid, gid, both := strings.Cut(m.user, ":")
	if n, err := strconv.Atoi(uid); err != nil || n == 0 || !both || gid != uid {
		t.Errorf("USER %s: want a number that is not root, and its group", m.user)
	}
	c := defaultSettings(t, "TRUNKLINE_STORE_DIR="+m.env["TRUNKLINE_STORE_DIR"])
	if !slices.Equal(m.volumes, []string{path.Dir(c.Store.Dir)}) || m.workdir != m.volumes[0] {
		t.Errorf("the store is in %s, volumes %q, working directory %s", c.Store.Dir, m.volumes, m.workdir)
	}
	var ports []string
	for _, addr := range slices.Concat(c.Kernel.ListenAddr, c.HTTP.ListenAddr, c.Threads.ListenAddr, c.Threads.LinesAddr) {
		ports = append(ports, addr[strings.LastIndex(addr, ":")+1:])
	}
	if !slices.Equal(m.ports, ports) {
		t.Errorf("EXPOSE %q, the program listens on %q", m.ports, ports)
	}
	program := "/usr/bin/trunkline"
	if !slices.Equal(m.entrypoint, []string{program}) || !slices.Equal(m.command, []string{"serve"}) {
		t.Errorf("%q %q", m.entrypoint, m.command)
	}
	if !slices.Equal(m.healthcmd, []string{program, "status", "--quiet", "--addr="}) {
		t.Errorf("HEALTHCHECK %q", m.healthcmd)
	}
	owner := "--chown=" + m.user
	want := [][]string{{owner, "data", "/data"}, {owner, "tmp", "/tmp"}, {"trunkline", program}}
	if !slices.EqualFunc(m.copies, want, slices.Equal) {
		t.Errorf("COPY %q", m.copies)
	}
}

// TestImageIsBuilt builds the image with each container tool of this machine, without a network.
func TestImageIsBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and an image")
	}
	for _, tool := range []string{"docker", "podman", "buildah"} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("there is no %s here", tool)
			}
			if out, err := exec.Command(tool, "info").CombinedOutput(); err != nil {
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				t.Skipf("%s cannot be used here: %s", tool, lines[len(lines)-1])
			}
			if tool == "buildah" { // it works without a service and without mounts
				t.Setenv("BUILDAH_ISOLATION", "chroot")
				t.Setenv("STORAGE_DRIVER", "vfs")
			}
			name := "trunkline-test:" + strconv.Itoa(os.Getpid())
			run := func(args ...string) string {
				t.Helper()
				out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v\n%s", args, err, out)
				}
				return string(out)
			}
			run("make", "-C", "../..", "image", "IMAGE="+name, "CONTAINER="+tool, "CONTEXT="+t.TempDir())
			t.Cleanup(func() { _ = exec.Command(tool, "rmi", name).Run() })
			m, made := readImage(t), ""
			if tool == "buildah" {
				made = run(tool, "inspect", "--type", "image", name)
			} else {
				made = run(tool, "image", "inspect", name)
				if out := run(tool, "run", "--rm", "--network=none", "--read-only", name, "--version"); !strings.HasPrefix(out, "trunkline ") {
					t.Error(out)
				}
			}
			for _, want := range append(m.healthcmd, m.user, m.volumes[0], m.ports[0]+"/tcp") {
				if !strings.Contains(made, `"`+want+`"`) {
					t.Errorf("the image has no %q:\n%s", want, made)
				}
			}
		})
	}
}
