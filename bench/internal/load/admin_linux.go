package load

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// downloadTimeout bounds one page of the admin listener, beside the time that it is asked to
// measure for.
const downloadTimeout = 20 * time.Second

// Profile runs a load against a trunkline with admin.pprof and writes a CPU profile of the server
// under that load to the file path, whose directory is created.
func (s *Server) Profile(cfg Config, warmup, lasting time.Duration, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("cannot create a directory for profiles: %w", err)
	}
	session, err := Start(cfg)
	if err != nil {
		return err
	}
	time.Sleep(warmup)
	err = s.Download(fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", lasting.Seconds()), path, lasting+downloadTimeout)
	_, stopErr := session.Stop()
	if err := errors.Join(err, stopErr); err != nil {
		return fmt.Errorf("cannot profile %s: %w", s.Name, err)
	}
	return nil
}

// page is a page of the server's admin listener.
func (s *Server) page(name string, within time.Duration) ([]byte, error) {
	admin := s.Listener("admin")
	if admin == "" {
		return nil, fmt.Errorf("cannot look into %s: it names no admin address", s.Name)
	}
	client := http.Client{Timeout: within}
	res, err := client.Get("http://" + admin + name)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", name, res.Status)
	}
	return io.ReadAll(res.Body)
}

// Download writes a page of the server's admin listener to a file.
func (s *Server) Download(page, path string, within time.Duration) error {
	b, err := s.page(page, within)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return fmt.Errorf("%s is empty", page)
	}
	return os.WriteFile(path, b, 0o666)
}

// Metrics reads what the server's admin listener exports, by name with labels as they stand there.
func (s *Server) Metrics() (map[string]float64, error) {
	b, err := s.page("/metrics", downloadTimeout)
	values := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		if at < 1 || line[0] == '#' {
			continue
		}
		if values[line[:at]], err = strconv.ParseFloat(line[at+1:], 64); err != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics of %s: %w", s.Name, err)
	}
	return values, nil
}
