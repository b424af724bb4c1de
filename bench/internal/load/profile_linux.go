package load

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// downloadTimeout bounds one page of the admin listener, beside the time that it is asked to
// measure for.
const downloadTimeout = 20 * time.Second

var adminListening = regexp.MustCompile(`admin listening on (\S+)`)

// adminTimeout bounds how much later than the listener that a start waits for a server names its
// admin listener.
const adminTimeout = 5 * time.Second

// Admin returns the address of a trunkline's admin listener. It waits until the server names it.
func (s *Server) Admin() (string, error) {
	for end := time.Now().Add(adminTimeout); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		admin := s.admin
		s.mu.Unlock()
		if admin != "" {
			return admin, nil
		}
		if !s.Alive() || time.Now().After(end) {
			return "", fmt.Errorf("cannot look into %s: it names no admin address", s.Name)
		}
	}
}

// Profile runs a load against a trunkline with admin.pprof, keeps a cpu profile of the server under
// it in the file path, and returns pprof's table of the functions at the top. The file's folder is
// made.
func (s *Server) Profile(cfg Config, warmup, lasting time.Duration, path string) (table string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", fmt.Errorf("cannot make a folder for profiles: %w", err)
	}
	session, err := Start(cfg)
	if err != nil {
		return "", err
	}
	time.Sleep(warmup)
	err = s.Download(fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", lasting.Seconds()), path, lasting+downloadTimeout)
	_, stopErr := session.Stop()
	if err := errors.Join(err, stopErr); err != nil {
		return "", fmt.Errorf("cannot profile %s: %w", s.Name, err)
	}
	top, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=40", path).Output()
	if err != nil {
		return "", fmt.Errorf("cannot read the profile of %s: %w", s.Name, err)
	}
	return withoutFiles(string(top)), nil
}

// withoutFiles is pprof's table without the lines that name the machine's files.
func withoutFiles(top string) string {
	_, table, _ := strings.Cut(top, "Duration:")
	return "Duration:" + table
}

// Download writes a page of the server's admin listener to a file.
func (s *Server) Download(page, path string, within time.Duration) error {
	admin, err := s.Admin()
	if err != nil {
		return err
	}
	client := http.Client{Timeout: within}
	res, err := client.Get("http://" + admin + page)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", page, res.Status)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, res.Body)
	return errors.Join(err, out.Close())
}
