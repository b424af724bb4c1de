package app

import (
	"encoding/json"
	"net/http"
	"strconv"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/engine/threadstore"
)

// webhooks returns all targets, or with a name one and its dead letters, with what waits for them
// in the partitions that this node owns.
func (s *server) webhooks(name string) (list []obs.Webhook, dead []threadstore.Letter) {
	if s.threads == nil {
		return nil, nil
	}
	for _, w := range s.threads.hooks.States() {
		if name != "" && name != w.Name {
			continue
		}
		for _, r := range s.replicas() {
			if r.kernel.whole.Load() {
				threads, letters, dropped := r.kernel.rt.Threads.WebhookBacklog(w.Name)
				w.Pending, w.DeadLetters, w.Dropped = w.Pending+threads, w.DeadLetters+len(letters), w.Dropped+dropped
				if name != "" {
					dead = append(dead, letters...)
				}
			}
		}
		list = append(list, w)
	}
	return list, dead
}

// registerWebhooks adds the metrics of webhooks.
func (s *server) registerWebhooks(reg *obs.Registry) error {
	return reg.AddGroup([]obs.Family{
		{Name: "trunkline_threads_webhook_attempts_total", Help: "Attempts to deliver to a webhook, by what came of them.", Labels: []string{"webhook", "result"}},
		{Name: "trunkline_threads_webhook_pending", Help: "Threads with something to deliver to a webhook.", Kind: obs.Gauge, Labels: []string{"webhook"}},
		{Name: "trunkline_threads_webhook_dead_letters", Help: "Deliveries to a webhook that were given up.", Kind: obs.Gauge, Labels: []string{"webhook"}},
	}, func(put obs.Put) {
		list, _ := s.webhooks("")
		for _, w := range list {
			put(0, float64(w.Delivered), w.Name, "ok")
			put(0, float64(w.Failed), w.Name, "failed")
			put(1, float64(w.Pending), w.Name)
			put(2, float64(w.DeadLetters), w.Name)
		}
	})
}

// serveWebhooks answers /webhooks, /webhooks/NAME/dead, and with POST /webhooks/NAME/resend.
func (s *server) serveWebhooks(w http.ResponseWriter, r *http.Request) {
	name, thread, number := r.PathValue("name"), r.URL.Query().Get("thread_id"), r.URL.Query().Get("seq")
	report := func(error, ...any) {}
	if r.Method == http.MethodPost {
		var ok bool
		if report, ok = s.console.Admit(w, r); !ok {
			return
		}
	}
	list, dead := s.webhooks(name)
	status, body := http.StatusOK, map[string]any{}
	switch seq, err := strconv.ParseUint(number, 10, 64); {
	case name == "":
		body["webhooks"] = append([]obs.Webhook{}, list...)
	case len(list) == 0:
		status, body["error"] = http.StatusNotFound, "there is no webhook "+strconv.Quote(name)
	case r.Method != http.MethodPost:
		body["dead_letters"] = append([]threadstore.Letter{}, dead...)
	case err != nil && number != "":
		status, body["error"] = http.StatusBadRequest, "cannot use seq: want a number"
	default:
		n := 0
		for _, c := range s.replicas() {
			if c.kernel.whole.Load() {
				n += c.kernel.rt.Threads.Resend(name, thread, seq)
			}
		}
		report(nil, "action", "webhook_resend", "webhook", name, "thread_id", thread, "seq", seq, "resent", n)
		body["resent"] = n
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error is dropped: the peer is gone
}

// prepareWebhooks reads the secrets of webhooks. apply puts all in force.
func (t *threadServer) prepareWebhooks(c *config.Threads) (apply func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	targets, err := c.WebhookTargets()
	return func() { t.hooks.Replace(targets) }, err
}
