package obs

// Webhook is a target of webhooks, and a row of /webhooks. Delivered and Failed count attempts of
// this process; LastStatus is 0 where the last one had no answer. An answer 410 has disabled it.
type Webhook struct {
	Name        string `json:"name"`
	Host        string `json:"host"` // of its URL
	Disabled    bool   `json:"disabled"`
	Delivered   uint64 `json:"delivered"`
	Failed      uint64 `json:"failed"`
	LastStatus  int    `json:"last_status"`
	LastError   string `json:"last_error,omitempty"`
	Pending     int    `json:"pending_threads"`
	DeadLetters int    `json:"dead_letters"`
	Dropped     uint64 `json:"dropped_dead_letters"`
}
