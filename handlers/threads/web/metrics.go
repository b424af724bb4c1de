package web

import (
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"trunkline/handlers/threads/method"
)

// The labels of operations that no row of the methods has. otherLabel is the index of the first.
const (
	otherLabel     = 0
	otherOperation = "other"
	mcpOperation   = "mcp_endpoint"
)

// The values of the other labels. The last of each stands for all that are not listed: labels never
// come from a peer.
var (
	methodLabels = [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "other"}
	statusLabels = [...]int{200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 429, 431, 500, 502, 503, 0}
)

// metrics are the counters of threads §4.10 that belong to HTTP. Counting does not allocate.
type metrics struct {
	operations []*operation // by label; never written after New
	faults     [256]atomic.Uint64
}

// operation has the counters of one value of the label operation.
type operation struct {
	name     string
	requests [len(methodLabels)][len(statusLabels)]atomic.Uint64
	nanos    atomic.Uint64
}

// name adds an operation, and returns its label. One that is there keeps it.
func (m *metrics) name(name string) int {
	for i, op := range m.operations {
		if op.name == name {
			return i
		}
	}
	m.operations = append(m.operations, &operation{name: name})
	return len(m.operations) - 1
}

// count notes an answer.
func (m *metrics) count(label int, httpMethod string, status int, took time.Duration) {
	i := slices.Index(methodLabels[:len(methodLabels)-1], httpMethod)
	if i < 0 {
		i = len(methodLabels) - 1
	}
	j := slices.Index(statusLabels[:len(statusLabels)-1], status)
	if j < 0 {
		j = len(statusLabels) - 1
	}
	op := m.operations[label]
	op.requests[i][j].Add(1)
	op.nanos.Add(uint64(max(took, 0)))
}

// Count notes an error envelope of a mounted handler.
func (s *Server) Count(c method.Condition) { s.metrics.faults[c].Add(1) }

// append appends all families in the text format of Prometheus.
func (m *metrics) append(dst []byte) []byte {
	dst = appendFamily(dst, "bridge_requests_total", "Answers over HTTP.")
	for _, op := range m.operations {
		for i := range op.requests {
			for j := range op.requests[i] {
				n := op.requests[i][j].Load()
				if n == 0 {
					continue
				}
				status := "other"
				if statusLabels[j] != 0 {
					status = strconv.Itoa(statusLabels[j])
				}
				dst = append(append(dst, `bridge_requests_total{operation="`...), op.name...)
				dst = append(append(dst, `",method="`...), methodLabels[i]...)
				dst = append(append(append(dst, `",status_code="`...), status...), `"} `...)
				dst = append(strconv.AppendUint(dst, n, 10), '\n')
			}
		}
	}
	dst = appendFamily(dst, "bridge_request_duration_ms_total", "Time of all requests, in milliseconds.")
	for _, op := range m.operations {
		dst = append(append(append(dst, `bridge_request_duration_ms_total{operation="`...), op.name...), `"} `...)
		ms := float64(op.nanos.Load()) / float64(time.Millisecond)
		dst = append(strconv.AppendFloat(dst, ms, 'f', -1, 64), '\n')
	}
	return m.appendFaults(appendFamily(dst, "bridge_errors_total", "Error envelopes over HTTP, by the code of the spec dialect."))
}

// appendFaults adds up the conditions of each code.
func (m *metrics) appendFaults(dst []byte) []byte {
	var names []string
	counts := map[string]uint64{}
	for i := range m.faults {
		if n := m.faults[i].Load(); n > 0 {
			code := method.Condition(i).Codes().Spec
			if counts[code] == 0 {
				names = append(names, code)
			}
			counts[code] += n
		}
	}
	slices.Sort(names)
	for _, code := range names {
		dst = append(append(append(dst, `bridge_errors_total{code="`...), code...), `"} `...)
		dst = append(strconv.AppendUint(dst, counts[code], 10), '\n')
	}
	return dst
}

func appendFamily(dst []byte, name, help string) []byte {
	dst = append(append(append(append(dst, "# HELP "...), name...), ' '), help...)
	return append(append(append(dst, "\n# TYPE "...), name...), " counter\n"...)
}
