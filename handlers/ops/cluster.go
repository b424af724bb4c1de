package ops

import (
	"net/http"
	"strconv"

	"trunkline/engine/obs"
)

// Cluster is the body of /cluster.
type Cluster = obs.Cluster

// StandbyHeader is a header of all answers of a node that does not own the journal of its cluster:
// what they show is of that node alone.
const StandbyHeader = "Trunkline-Standby"

func (c Config) addCluster(mux *http.ServeMux) {
	mux.HandleFunc("/cluster", func(w http.ResponseWriter, r *http.Request) {
		if c.Cluster == nil {
			refuse(w, &Refusal{Status: http.StatusNotFound, Text: obs.NoCluster})
			return
		}
		check, _ := strconv.ParseBool(r.URL.Query().Get("check")) // anything else is no
		answer(w, http.StatusOK, c.Cluster(r.Context(), check))
	})
}

// markStandby adds the StandbyHeader.
func (c Config) markStandby(h http.Header) {
	if c.Standing == nil {
		return
	}
	if text := c.Standing().Standby(); text != "" {
		h.Set(StandbyHeader, text)
	}
}
