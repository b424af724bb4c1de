package ops

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"trunkline/engine/obs"
)

// How many rows of a list an answer has.
const (
	defaultRows = 100
	maxRows     = 10_000
)

// Latencies is the body of /latency.
type Latencies struct {
	Latencies []obs.Latency `json:"latencies"`
}

// Connections is the body of /connections: Total counts those of the asked protocol, of which there
// may be more than are listed.
type Connections struct {
	Total       int              `json:"total"`
	Connections []obs.Connection `json:"connections"`
}

// problem is the body of a refusal.
type problem struct {
	Error string `json:"error"`
}

// addLatency adds the routes of what takes how long, for whom.
func (c Config) addLatency(mux *http.ServeMux) {
	if c.Latencies != nil {
		mux.HandleFunc("/latency", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, Latencies{c.Latencies()})
		})
	}
	if c.Connections != nil {
		mux.HandleFunc("/connections", c.connections)
	}
	if c.Slow != nil {
		mux.HandleFunc("/slowlog", c.slowlog)
	}
}

func (c Config) slowlog(w http.ResponseWriter, r *http.Request) {
	limit, ok := limitOf(w, r)
	if !ok {
		return
	}
	l := c.Slow()
	l.Entries = l.Entries[:min(len(l.Entries), limit)]
	answer(w, http.StatusOK, l)
}

// Protocols are the values of protocol for /connections: those of connections and slow requests.
func Protocols() []string { return []string{"ipc", "http", "toolhost", "threads", "exacta"} }

func (c Config) connections(w http.ResponseWriter, r *http.Request) {
	limit, ok := limitOf(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	order := obs.ConnectionOrders[cmp.Or(q.Get("sort"), "id")]
	if order == nil {
		names := slices.Sorted(maps.Keys(obs.ConnectionOrders))
		answer(w, http.StatusBadRequest, problem{"cannot sort by " + strconv.Quote(q.Get("sort")) + ": want one of " + strings.Join(names, ", ")})
		return
	}
	protocol := q.Get("protocol")
	if protocol != "" && !slices.Contains(Protocols(), protocol) {
		answer(w, http.StatusBadRequest, problem{"cannot list connections of protocol " + strconv.Quote(protocol) + ": want one of " + strings.Join(Protocols(), ", ")})
		return
	}
	rows := c.Connections()
	if protocol != "" {
		rows = slices.DeleteFunc(rows, func(row obs.Connection) bool { return row.Protocol != protocol })
	}
	slices.SortStableFunc(rows, func(a, b obs.Connection) int {
		return cmp.Or(order(&a, &b), cmp.Compare(a.Protocol, b.Protocol), obs.ConnectionOrders["id"](&a, &b))
	})
	shown := append([]obs.Connection{}, rows[:min(len(rows), limit)]...)
	answer(w, http.StatusOK, Connections{len(rows), shown})
}

// limitOf reads how many rows are asked for. With ok false the request is refused.
func limitOf(w http.ResponseWriter, r *http.Request) (n int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultRows, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRows {
		answer(w, http.StatusBadRequest, problem{"cannot use limit " + strconv.Quote(text) + ": want 1 to " + strconv.Itoa(maxRows)})
		return 0, false
	}
	return n, true
}
