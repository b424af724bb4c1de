package config

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/webhook"
)

// Bounds of webhooks. Those of secrets are in bytes.
const (
	maxWebhooks      = 64
	minWebhookSecret = 24
	maxWebhookSecret = 64   // behind secretPrefix, decoded
	maxWebhookText   = 4096 // without secretPrefix
	secretPrefix     = "whsec_"
)

// Webhook is an entry of threads.webhooks.
type Webhook struct {
	Name         string   `json:"name"`
	URL          string   `json:"url"`
	SecretFile   string   `json:"secret_file"`
	Workspace    string   `json:"workspace,omitempty"`
	ThreadTypes  []string `json:"thread_types,omitempty"`
	EventTypes   []string `json:"event_types,omitempty"`
	AllowPrivate []string `json:"allow_private,omitempty"`
}

// webhookMembers are the names of the fields; the first three are required.
var (
	webhookMembers = []string{"name", "url", "secret_file", "workspace", "thread_types", "event_types", "allow_private"}
	webhookName    = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)
)

// assignWebhooks takes the list of the settings file.
func assignWebhooks(p *[]Webhook, v any) error {
	list, ok := v.([]any)
	if !ok || len(list) > maxWebhooks {
		return fmt.Errorf("want a list of at most %d webhooks in the settings file", maxWebhooks)
	}
	hooks := make([]Webhook, len(list))
	for i := range list {
		w := &hooks[i]
		if err := w.assign(list[i]); err != nil {
			return fmt.Errorf("webhook %d: %w", i+1, err)
		}
		if slices.ContainsFunc(hooks[:i], func(other Webhook) bool { return other.Name == w.Name }) {
			return fmt.Errorf("webhook %d: name %q is in the list twice", i+1, w.Name)
		}
	}
	*p = hooks
	return nil
}

func (w *Webhook) assign(v any) error {
	values, _ := v.(map[string]any)
	for name := range values {
		if !slices.Contains(webhookMembers, name) {
			nearest := slices.MinFunc(webhookMembers, func(a, b string) int { return cli.Distance(name, a) - cli.Distance(name, b) })
			return fmt.Errorf("unknown member %s; the nearest known one is %s", name, nearest)
		}
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, w)
	}
	if err != nil {
		return fmt.Errorf("want members that are texts or lists of texts: %w", err)
	}
	u, err := url.Parse(w.URL)
	switch {
	case !webhookName.MatchString(w.Name):
		return fmt.Errorf("name %q: want 1 to 64 of a-z, 0-9, _ and -", w.Name)
	case w.SecretFile == "":
		return fmt.Errorf("%s: secret_file is not set", w.Name)
	case err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "": // it may have a secret
		return fmt.Errorf("%s: url: want https://HOST/PATH, without a user", w.Name)
	case u.Scheme != "https" && (u.Scheme != "http" || !w.private(u)):
		return fmt.Errorf("%s: url: want https, or http to a host that allow_private names", w.Name)
	}
	types := []string{threadstore.Conversation.String(), threadstore.Workflow.String(), threadstore.Incident.String()}
	for _, name := range w.ThreadTypes {
		if !slices.Contains(types, name) {
			return fmt.Errorf("%s: thread_types: %q is none of %s", w.Name, name, strings.Join(types, ", "))
		}
	}
	return nil
}

// private reports whether the host of a URL may have a private address.
func (w *Webhook) private(u *url.URL) bool {
	return slices.ContainsFunc(w.AllowPrivate, func(host string) bool { return strings.EqualFold(strings.Trim(host, "[]"), u.Hostname()) })
}

// secret reads secret_file.
func (w *Webhook) secret() ([]byte, error) {
	text, err := secretOf("secret_file of webhook "+w.Name, w.SecretFile, minWebhookSecret, maxWebhookText)
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if err != nil || !ok {
		return []byte(text), err
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(secret) < minWebhookSecret || len(secret) > maxWebhookSecret {
		return nil, fmt.Errorf("cannot use the secret_file of webhook %s: want base64 of %d to %d bytes behind %s",
			w.Name, minWebhookSecret, maxWebhookSecret, secretPrefix)
	}
	return secret, nil
}

// WebhookTargets returns the webhooks. It reads their secrets.
func (t *Threads) WebhookTargets() (list []webhook.Target, err error) {
	for i := range t.Webhooks {
		w := &t.Webhooks[i]
		secret, err := w.secret()
		if err != nil {
			return nil, err
		}
		u, _ := url.Parse(w.URL) // it was checked
		selects := threadstore.Webhook{Name: w.Name, Workspace: w.Workspace, Types: w.ThreadTypes, Events: w.EventTypes}
		list = append(list, webhook.Target{Webhook: selects, URL: w.URL, Secret: secret, Private: w.private(u)})
	}
	return list, nil
}

// showWebhooks returns the list as JSON.
func showWebhooks(list []Webhook) string {
	text, _ := json.Marshal(list) // it does not fail
	return string(text)
}
