package load

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics reads what the server's admin listener exports, by name with labels as they stand there.
func (s *Server) Metrics() (map[string]float64, error) {
	admin, err := s.Admin()
	if err != nil {
		return nil, err
	}
	return metricsAt(admin)
}

func metricsAt(admin string) (map[string]float64, error) {
	client := http.Client{Timeout: downloadTimeout}
	res, err := client.Get("http://" + admin + "/metrics")
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot read metrics: %s answers %s", admin, res.Status)
	}
	return parseMetrics(res.Body)
}

func parseMetrics(in io.Reader) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read metric %q: %w", line, err)
		}
		values[line[:at]] = v
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	return values, nil
}
