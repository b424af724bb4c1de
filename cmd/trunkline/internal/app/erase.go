package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"

	"trunkline/engine/cluster/placement"
	"trunkline/engine/threadstore"
)

const (
	// maxEraseReason and maxEraseBody bound the reason of an erasure and the order, in bytes.
	maxEraseReason = 1024
	maxEraseBody   = 16 << 10
	// exportWithin is how long a reader of an export may take for a part.
	exportWithin = 30 * time.Second
)

var (
	errNoThread  = errors.New("cannot find the thread")
	errBadReason = errors.New(`cannot erase: want {"reason":"…"} as application/json, one line of 1 to 1024 bytes`)
	errErasures  = errors.New("cannot erase: changes cannot be stored now, or too many erasures are pending")
)

// threadOrders returns what operators do with agent threads on the admin address, in the partitions
// that this node leads.
func (s *server) threadOrders(operators func(next http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /threads/{id}/export", s.exportThread)
	mux.HandleFunc("POST /threads/{id}/erase", s.eraseText)
	mux.HandleFunc("POST /agents/{workspace}/{agent}/erase", s.eraseText)
	mux.HandleFunc("GET /erasures", s.erasures)
	return operators(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w) // it may take longer than other requests have
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})
		mux.ServeHTTP(w, r)
	}))
}

// answerOrder answers an order by JSON.
func answerOrder(w http.ResponseWriter, status int, body any, err error) {
	if err != nil {
		body, status = map[string]string{"error": err.Error()}, http.StatusServiceUnavailable
		switch err {
		case errNoThread:
			status = http.StatusNotFound
		case errBadReason:
			status = http.StatusBadRequest
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// threadsOf returns the agent threads of a partition that this node leads.
func (s *server) threadsOf(r *replica) (*threadstore.Engine, error) {
	if !r.kernel.whole.Load() {
		return nil, cmp.Or(s.console.unready(), errNotReady)
	}
	return r.kernel.rt.Threads, nil
}

// threadsWith returns those of the partition that has a thread.
func (s *server) threadsWith(id string) (e *threadstore.Engine, err error) {
	for _, r := range s.replicas() {
		if e, err = s.threadsOf(r); err == nil {
			if _, ok := e.Show([]byte(id)); ok {
				return e, nil
			}
		}
	}
	return nil, cmp.Or(err, errNoThread)
}

// exportThread streams a thread. What has no last line was cut off.
func (s *server) exportThread(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	e, err := s.threadsWith(id)
	if err != nil {
		answerOrder(w, 0, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	rc := http.NewResponseController(w)
	err = e.Export(r.Context(), []byte(id), func(lines []byte) error {
		_ = rc.SetWriteDeadline(time.Now().Add(exportWithin))
		_, err := w.Write(lines)
		return cmp.Or(err, rc.Flush())
	})
	if err != nil {
		s.log.Warn("export of a thread was cut off", "thread", id, "error", err)
	}
}

// eraseText erases what the path names. The body is {"reason":"…"}.
func (s *server) eraseText(w http.ResponseWriter, r *http.Request) {
	id, workspace, agent := r.PathValue("id"), r.PathValue("workspace"), r.PathValue("agent")
	var body struct {
		Reason string `json:"reason"`
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEraseBody)).Decode(&body)
	reason := strings.TrimSpace(body.Reason)
	if err != nil || media != "application/json" || reason == "" || len(reason) > maxEraseReason ||
		strings.ContainsFunc(workspace+agent+reason, unicode.IsControl) {
		answerOrder(w, 0, nil, errBadReason)
		return
	}
	var e *threadstore.Engine
	if id != "" {
		e, err = s.threadsWith(id)
	} else if keys, bad := placement.NewKeyspace(len(s.parts)); bad == nil {
		e, err = s.threadsOf(s.parts[keys.Partition(placement.Workspace, workspace)].current.Load())
	}
	var done threadstore.Erasure
	var refused threadstore.Refusal
	switch now := time.Now().UnixMilli(); {
	case err != nil:
	case id != "":
		done, refused = e.EraseThread([]byte(id), reason, now)
	default:
		done, refused = e.EraseAgent(workspace, agent, reason, now)
	}
	if refused.Code != threadstore.OK {
		err = cmp.Or(refused.Err, errErasures)
	}
	s.log.Info("erasure ordered", "path", r.URL.Path, "peer", r.RemoteAddr, "reason", reason, "error", err)
	answerOrder(w, http.StatusAccepted, done, err)
}

func (s *server) erasures(w http.ResponseWriter, _ *http.Request) {
	all, err := []threadstore.Erasure{}, error(nil)
	for _, r := range s.replicas() {
		if r.kernel.rt.Rows() != nil && err == nil {
			var list []threadstore.Erasure
			list, err = r.kernel.rt.Threads.Erasures()
			all = append(all, list...)
		}
	}
	answerOrder(w, http.StatusOK, map[string]any{"erasures": all}, err)
}
