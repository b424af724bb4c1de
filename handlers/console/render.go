package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"trunkline/engine/obs"
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
	// Standby marks a page of a node that does not own the journal of its cluster, InCluster is set
	// for any node of one.
	Standby   string
	InCluster bool
	At        time.Time
	Data      any
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
	v := visitorOf(r)
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
	if err == nil && p.tables && c.cfg.Source.Unready != nil {
		err = c.cfg.Source.Unready()
	}
	if err == nil {
		data, err = p.load(c, r, q)
		err = cmp.Or(q.err, err)
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
	case errors.Is(err, obs.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, obs.ErrRefused):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// answer sends a body as JSON.
func answer(w http.ResponseWriter, status int, body any) { send(w, status, true, encode(body)) }

// wantsPage reports whether a browser asks, for a person.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// refuse answers a request that is not carried out: a person by a page, a program by JSON.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, v visitor, status int, text string) {
	if wantsPage(r) {
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
	if s := c.standing(); s != nil && v.role != stranger && name != errorTemplate {
		out.InCluster, out.Standby = true, mark(s)
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

// standing returns what the server is to the journal of its cluster, nil where there is none.
func (c *Console) standing() *obs.Standing {
	if c.cfg.Source.Standing == nil {
		return nil
	}
	return c.cfg.Source.Standing()
}

// mark returns what pages of a node show that does not own the journal, "" for the owner.
func mark(s *obs.Standing) string {
	text := s.Standby()
	switch {
	case text == "":
	case s.Partitions > 1:
		text += ". What this node shows is of itself: the owners of other partitions have consoles of their own."
	default:
		text += ". What this node shows is of itself: the owner serves all clients, and has its own console."
	}
	return text
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

// query holds the parameters of a page. err is about the first one that was read and cannot be
// used: there is no page then.
type query struct {
	values url.Values
	err    error
}

// parseQuery reads the parameters, all of which are text of a bounded size.
func parseQuery(raw string) (*query, error) {
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
	return &query{values: values}, nil
}

func (q *query) text(name string) string { return q.values.Get(name) }

// refuse notes why a parameter cannot be used.
func (q *query) refuse(format string, args ...any) {
	q.err = cmp.Or(q.err, badf(format, args...))
}

// number returns a parameter that is a whole number, 0 without it.
func (q *query) number(name string) uint64 {
	text := q.text(name)
	n, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		q.refuse("%s=%q is no number", name, text)
		return 0
	}
	return n
}

// rows returns how many rows a page is to have.
func (q *query) rows() int {
	if q.text("limit") == "" {
		return defaultRows
	}
	n := q.number("limit")
	if n < 1 || n > maxRows {
		q.refuse("limit=%d is not from 1 to %d", n, maxRows)
		return 1
	}
	return int(n)
}

// oneOf returns a parameter that is empty or one of a list.
func (q *query) oneOf(name string, list []string) string {
	text := q.text(name)
	if i := slices.IndexFunc(list, func(s string) bool { return strings.EqualFold(text, s) }); i >= 0 {
		return list[i]
	}
	if text != "" {
		q.refuse("%s=%q is not one of %s", name, text, strings.Join(list, ", "))
	}
	return ""
}

// with returns the path and query of a page with some parameters set.
func (q *query) with(path string, pairs ...any) string {
	values := maps.Clone(q.values)
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return path + "?" + values.Encode()
}
