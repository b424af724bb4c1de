package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// view is what the layout of all pages shows.
type view struct {
	Title   string
	Nav     []link
	Version string
	Role    string
	// CSRF is the secret of forms; empty where nothing can be posted.
	CSRF string
	// CanChange is set for an operator, LoggedIn where there is a session to end.
	CanChange, LoggedIn bool
	// JSON is the path of the same content as JSON; empty where there is none.
	JSON string
	At   time.Time
	Data any
}

// link is an entry of the navigation. Key is the second key of its shortcut.
type link struct {
	Path, Title, Key string
	Current          bool
}

// Names of templates that are no pages of their own.
const (
	loginTemplate = "login"
	errorTemplate = "error"
)

// errorView is what the page of an error shows.
type errorView struct {
	Status int
	Text   string
}

// show answers the request of a page.
func (c *Console) show(w http.ResponseWriter, r *http.Request, p *page, asJSON bool) {
	v, ok := c.admit(w, r, asJSON)
	if !ok {
		return
	}
	done, err := c.begin(r.Context(), p)
	if err != nil {
		c.refuse(w, r, v, http.StatusServiceUnavailable, err.Error())
		return
	}
	status, body := c.content(r, p, v, asJSON)
	done()
	send(w, status, asJSON, body)
}

// begin returns when a page may be made; the caller calls done before it is sent, which may take
// long.
func (c *Console) begin(ctx context.Context, p *page) (done func(), err error) {
	if !p.documents {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	select {
	case c.made <- struct{}{}:
		return func() { <-c.made }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%d pages of this kind are being made, which is the limit; try again", maxMade)
	}
}

// content makes a page.
func (c *Console) content(r *http.Request, p *page, v visitor, asJSON bool) (status int, body []byte) {
	q, err := parseQuery(r.URL.RawQuery)
	var data any
	if err == nil {
		data, err = p.load(c, r, q)
	}
	switch {
	case err != nil && asJSON:
		return statusOf(err), encode(failure{err.Error()})
	case err != nil:
		return c.html(r, statusOf(err), errorTemplate, v, errorView{statusOf(err), err.Error()})
	case asJSON:
		return http.StatusOK, encode(data)
	}
	return c.html(r, http.StatusOK, p.name, v, data)
}

// send sends a body, which is HTML unless it is JSON.
func send(w http.ResponseWriter, status int, asJSON bool, body []byte) {
	kind := "text/html; charset=utf-8"
	if asJSON {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the peer may be gone
}

// encode returns a body as JSON that is no markup anywhere.
func encode(body any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(true)
	_ = e.Encode(body) // no body of this room fails
	return b.Bytes()
}

// statusOf returns the status that stands for an error.
func statusOf(err error) int {
	var bad *badQuery
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrRefused):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// answer sends a body as JSON.
func answer(w http.ResponseWriter, status int, body any) { send(w, status, true, encode(body)) }

// refuse answers a request that is not carried out: a person by a page, a program by JSON.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, v visitor, status int, text string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		c.render(w, r, status, errorTemplate, v, errorView{status, text})
		return
	}
	answer(w, status, failure{text})
}

// render answers by a template.
func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, name string, v visitor, data any) {
	status, body := c.html(r, status, name, v, data)
	send(w, status, false, body)
}

// html executes a template whole.
func (c *Console) html(r *http.Request, status int, name string, v visitor, data any) (int, []byte) {
	p := c.pageNamed(name)
	out := view{Title: p.title, Version: c.cfg.Version, Role: v.role.String(), CanChange: v.role == operator, At: c.cfg.now(), Data: data}
	switch {
	case v.session != nil:
		out.CSRF, out.LoggedIn = v.session.secret, true
	case name == loginTemplate:
		out.CSRF = c.auth.formSecret(0)
	}
	if v.role != stranger {
		out.Nav = c.nav(name)
	}
	if p.load != nil {
		u := url.URL{Path: root + p.name + ".json", RawQuery: r.URL.RawQuery}
		out.JSON = u.String()
	}
	var b bytes.Buffer
	if err := p.template.ExecuteTemplate(&b, "layout", out); err != nil {
		c.cfg.Logger.Error("cannot render a page of the console", "page", name, "error", err)
		return http.StatusInternalServerError, []byte("cannot render this page")
	}
	return status, b.Bytes()
}

// nav returns the navigation, seen from a page.
func (c *Console) nav(current string) (list []link) {
	for _, p := range c.pages {
		if p.key == "" {
			continue
		}
		path := root + p.name
		if p.name == overviewPage {
			path = root
		}
		list = append(list, link{Path: path, Title: p.title, Key: p.key, Current: p.name == current || p.name == c.pageNamed(current).parent})
	}
	return list
}

// badQuery is the error of a request that asks for what cannot be.
type badQuery struct{ text string }

// Error implements error.
func (e *badQuery) Error() string { return e.text }

func badf(format string, args ...any) error { return &badQuery{fmt.Sprintf(format, args...)} }

// query holds the parameters of a page.
type query url.Values

// parseQuery reads the parameters, all of which are text of a bounded size.
func parseQuery(raw string) (query, error) {
	if len(raw) > maxForm {
		return nil, badf("the parameters have %d bytes, at most %d", len(raw), maxForm)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badf("cannot read the parameters: %v", err)
	}
	for name, list := range values {
		for _, text := range list {
			if len(text) > maxText || !utf8.ValidString(text) {
				return nil, badf("the parameter %q is not UTF-8 text of at most %d bytes", name, maxText)
			}
		}
	}
	return query(values), nil
}

func (q query) text(name string) string { return url.Values(q).Get(name) }

// number returns a parameter that is a whole number, 0 without it.
func (q query) number(name string) (uint64, error) {
	text := q.text(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badf("%s=%q is no number", name, text)
	}
	return n, nil
}

// rows returns how many rows a page is to have.
func (q query) rows() (int, error) {
	n, err := q.number("limit")
	switch {
	case err != nil:
		return 0, err
	case q.text("limit") == "":
		return defaultRows, nil
	case n < 1 || n > maxRows:
		return 0, badf("limit=%d is not from 1 to %d", n, maxRows)
	}
	return int(n), nil
}

// oneOf returns a parameter that is empty or one of a list.
func (q query) oneOf(name string, list []string) (string, error) {
	text := q.text(name)
	for _, s := range list {
		if strings.EqualFold(text, s) {
			return s, nil
		}
	}
	if text == "" {
		return "", nil
	}
	return "", badf("%s=%q is not one of %s", name, text, strings.Join(list, ", "))
}

// with returns the path and query of a page with some parameters set.
func (q query) with(path string, pairs ...any) string {
	values := url.Values{}
	for name, list := range q {
		values[name] = list
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return path + "?" + values.Encode()
}

// functions are what templates call.
func functions(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"ago":     func(t time.Time) string { return ago(now().Sub(t)) },
		"rfc":     func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"seconds": seconds,
		"bytes":   func(n any) string { return size(toFloat(n)) },
		"count":   func(n any) string { return group(fmt.Sprint(n)) },
		"perSec":  perSecond,
		"json":    indented,
		"lower":   strings.ToLower,
		"pieces":  pieces,
		"maxRows": func() int { return maxRows },
		"facts":   (*overview).facts, "states": (*overview).states, "protocols": (*overview).protocols,
		"stages": stages, "edges": edges,
	}
}

// pieces returns the parts of the name of a setting between which a line may break.
func pieces(name string) (list []string) {
	for part := range strings.SplitAfterSeq(name, ".") {
		list = append(list, strings.SplitAfter(part, "_")...)
	}
	return list
}

// ago returns how long ago something was, in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + seconds(-d.Seconds())
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s ago"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " d ago"
}

// seconds returns a time in a unit in which it has few digits.
func seconds(s float64) string {
	switch {
	case s <= 0:
		return "0"
	case s < 1e-3:
		return digits(s*1e6) + " µs"
	case s < 1:
		return digits(s*1e3) + " ms"
	case s < 120:
		return digits(s) + " s"
	case s < 2*3600:
		return digits(s/60) + " min"
	case s < 48*3600:
		return digits(s/3600) + " h"
	}
	return digits(s/86400) + " d"
}

// size returns a number of bytes.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return digits(n) + " " + units[i]
}

// perSecond returns a rate.
func perSecond(n float64) string { return digits(n) + "/s" }

// digits returns a number with about three digits.
func digits(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 9.995:
		return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(n, 'f', 2, 64), "0"), ".")
	case n < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	}
	return group(strconv.FormatFloat(n, 'f', 0, 64))
}

// group separates the thousands of a whole number.
func group(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

func toFloat(n any) float64 {
	f, _ := strconv.ParseFloat(fmt.Sprint(n), 64)
	return f
}

// maxDocument bounds a JSON document on a page, in bytes. The page as JSON has it whole.
const maxDocument = 256 << 10

// indented returns a JSON document for people.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	if b.Len() <= maxDocument {
		return b.String()
	}
	return strings.ToValidUTF8(b.String()[:maxDocument], "") + "\n… cut; the page as JSON has it whole"
}
