package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
	"trunkline/handlers/ops"
)

// TestImageRunsWithNothingElse starts this program as the image does: a root directory that has
// only what the image has, its user, its environment, its commands. It takes no container.
func TestImageRunsWithNothingElse(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may change the root directory")
	}
	m := readImage(t)
	uid, _, _ := strings.Cut(m.user, ":")
	id, err := strconv.Atoi(uid)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, c := range m.copies {
		to := filepath.Join(root, c[len(c)-1])
		if c[0] == "trunkline" {
			installSelf(t, to)
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(to, id, id); err != nil {
			t.Fatal(err)
		}
	}
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	in := func(args []string) *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = m.workdir
		for name, value := range m.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, listenOn(host)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
		return cmd
	}
	var log bytes.Buffer
	server := in(append(m.entrypoint, m.command...))
	server.Stderr = &log
	if err := kit.Start(server); err != nil {
		t.Skipf("cannot change the root directory here: %v", err)
	}
	healthy := false
	for deadline := time.Now().Add(waitFor); !healthy && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		healthy = in(m.healthcmd).Run() == nil
	}
	_ = server.Process.Signal(syscall.SIGTERM)
	if err := server.Wait(); err != nil || !healthy {
		t.Fatalf("healthy %v, %v\n%s", healthy, err, log.String())
	}
	if err := in(m.healthcmd).Run(); err == nil {
		t.Error("healthy without a server")
	}
	store, err := os.Stat(filepath.Join(root, m.env["TRUNKLINE_STORE_DIR"]))
	if err != nil || store.Mode().Perm() != 0o700 || store.Sys().(*syscall.Stat_t).Uid != uint32(id) {
		t.Errorf("store %v, %v", store, err)
	}
}

// installSelf puts this program, which is the one that is shipped and its tests, where an image has
// it.
func installSelf(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Skip("this test was built with cgo, the program that is shipped is not")
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// listenOn returns variables that have the listeners of the defaults on another loopback address.
func listenOn(host string) []string {
	return []string{
		"TRUNKLINE_KERNEL_LISTEN_ADDR=" + host + ":50051", "TRUNKLINE_HTTP_LISTEN_ADDR=" + host + ":50080",
		"TRUNKLINE_ADMIN_LISTEN_ADDR=" + host + ":50090",
	}
}

// getWith is a GET with a token, "" for none.
func getWith(url, token string) (*http.Response, error) {
	q, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	return http.DefaultClient.Do(q)
}

// TestPodAnswersItsProbes with agent threads and without.
func TestPodAnswersItsProbes(t *testing.T) {
	podAnswers(t, readManifest[kubeStatefulSet](t, "statefulset.yaml").Spec.Template.Spec.Containers[0])
	podAnswers(t, threadsPod(t), "threads http listening on %s:3000 (tls)", "threads lines listening on %s:3001 (tls)")
}

// podAnswers starts a server with the variables of a pod, on a loopback address and with files of
// this test, and asks it what the probes and the monitor ask. Its banner has these lines, with the
// address in them.
func podAnswers(t *testing.T, c kubeContainer, lines ...string) {
	t.Helper()
	dir := t.TempDir()
	writeAuthority(t, dir)
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	names := strings.NewReplacer("0.0.0.0:", host+":", "/etc/trunkline/tls/", dir+"/", "/etc/trunkline/admin/", dir+"/",
		"/etc/trunkline/threads/", dir+"/", "/data/", dir+"/data/")
	if err := os.Mkdir(dir+"/data", 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("trunkline", c.Args...)
	cmd.Dir = dir
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+names.Replace(e.Value))
	}
	var log pageOutput
	cmd.Stderr = &log
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	admin := names.Replace(c.env()["TRUNKLINE_ADMIN_LISTEN_ADDR"])
	monitor := readManifest[kubeServiceMonitor](t, "servicemonitor.yaml")
	f := func(path, token, want string) {
		t.Helper()
		status := ""
		for deadline := time.Now().Add(waitFor); status != want &&
			time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if resp, err := getWith("http://"+admin+path, token); err == nil {
				status = resp.Status
				resp.Body.Close()
			}
		}
		if status != want {
			t.Errorf("%s: %s\n%s", path, status, log.String())
		}
	}
	f(c.ReadinessProbe.HTTPGet.Path, "", "200 OK")
	f(c.LivenessProbe.HTTPGet.Path, "", "200 OK")
	f(monitor.Spec.Endpoints[0].Path, "", "401 Unauthorized")
	f(monitor.Spec.Endpoints[0].Path, podToken, "200 OK")
	for _, line := range append(lines, "kernel ipc listening on %s:50051 (tls)", "http listening on %s:50080 (tls)") {
		if line = fmt.Sprintf(line, host); !strings.Contains(log.String(), line) {
			t.Errorf("no %q in\n%s", line, log.String())
		}
	}
}

// TestPodsOfAClusterAnswerTheirProbes starts three nodes with the variables of the pods, each on a
// loopback address of its own, which stands for its name.
func TestPodsOfAClusterAnswerTheirProbes(t *testing.T) {
	longBesideOthers(t)
	c := readManifest[kubeStatefulSet](t, "cluster/statefulset.yaml").Spec.Template.Spec.Containers[0]
	dir := t.TempDir()
	writeAuthority(t, dir)
	network := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256))
	hosts := strings.NewReplacer("trunkline-0.trunkline-nodes", network+"1", "trunkline-1.trunkline-nodes", network+"2", "trunkline-2.trunkline-nodes", network+"3")
	var admins []string
	var logs [3]pageOutput
	for i := range logs {
		pod, host := fmt.Sprintf("trunkline-%d", i), fmt.Sprintf("%s%d", network, i+1)
		names := strings.NewReplacer("$(POD_NAME)", pod, "0.0.0.0:", host+":", "/etc/trunkline/tls/", dir+"/",
			"/etc/trunkline/admin/", dir+"/", "/etc/trunkline/cluster/", dir+"/", "/data/", dir+"/"+pod+"/")
		if err := os.Mkdir(filepath.Join(dir, pod), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("trunkline", c.Args...)
		cmd.Dir = dir
		for _, e := range c.Env {
			cmd.Env = append(cmd.Env, e.Name+"="+hosts.Replace(names.Replace(e.Value)))
		}
		cmd.Stderr = &logs[i]
		ended := startTied(t, cmd)
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
			if t.Failed() {
				t.Logf("%s:\n%s", pod, logs[i].String())
			}
		})
		admins = append(admins, names.Replace(c.env()["TRUNKLINE_ADMIN_LISTEN_ADDR"]))
	}
	owners := 0
	for _, admin := range admins {
		for _, path := range []string{c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path} {
			status := ""
			for deadline := time.Now().Add(clusterPatience); status != "200 OK" && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				if resp, err := http.Get("http://" + admin + path); err == nil {
					status = resp.Status
					resp.Body.Close()
				}
			}
			if status != "200 OK" {
				t.Fatalf("%s: %s", path, status)
			}
		}
		resp, err := getWith("http://"+admin+"/cluster", podToken)
		if err != nil {
			t.Fatal(err)
		}
		var seen ops.Cluster
		err = json.NewDecoder(resp.Body).Decode(&seen)
		resp.Body.Close()
		if err != nil || len(seen.Nodes) != len(admins) || seen.Owner == "" {
			t.Errorf("%+v, %v", seen, err)
		}
		if seen.Role == "owner" {
			owners++
		}
	}
	if owners != 1 {
		t.Errorf("%d owners", owners)
	}
}
