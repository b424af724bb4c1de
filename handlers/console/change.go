package console

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// visitorKey is the key of the visitor in the context of a request that Guard has let through.
type visitorKey struct{}

// visitorOf returns the visitor of a request that Guard has let through.
func visitorOf(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
}

// Guard passes a request to next if it is of a visitor, with a context that ends when the role may
// be another. It answers all others, but for what the login form consists of: browsers are sent to
// that form, programs get 401.
func (c *Console) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(loginPaths, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		v, wait := c.auth.who(r, c.origins)
		if wait > 0 {
			c.tooMany(w, r, wait)
			return
		}
		if v.role == stranger {
			c.turnAway(w, r, v)
			return
		}
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), visitorKey{}, v))
		defer cancel()
		defer context.AfterFunc(v.going, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Operators passes a request to next if it is of an operator and comes from no other page. It is
// for what else is on the listener and is behind Guard.
func (c *Console) Operators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := visitorOf(r), c.origins.Check(r)
		if v.role == operator && err == nil {
			next.ServeHTTP(w, r)
			return
		}
		c.cfg.Logger.Warn("request of an operator refused", "path", r.URL.Path, "by", v.role.String(), "peer", r.RemoteAddr)
		c.refuse(w, r, v, http.StatusForbidden, "this needs the token of an operator (admin.console_operator_token_file), from this page")
	})
}

// turnAway answers a request that is of no visitor.
func (c *Console) turnAway(w http.ResponseWriter, r *http.Request, v visitor) {
	protect(w.Header())
	if r.Header.Get("Authorization") != "" || r.Method != http.MethodGet && r.Method != http.MethodHead || !wantsPage(r) {
		if v.going != nil { // a token was shown
			c.cfg.Logger.Warn("console token refused", "path", r.URL.Path, "peer", r.RemoteAddr)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="trunkline console"`)
		c.refuse(w, r, v, http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN, or a login at "+root+"login")
		return
	}
	http.Redirect(w, r, root+"login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

// tooMany refuses a peer with too many failures.
func (c *Console) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	protect(w.Header())
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	c.refuse(w, r, visitor{}, http.StatusTooManyRequests, "too many wrong tokens from this address; try again later")
}

// failure is the body of an answer that refuses.
type failure struct {
	Error string `json:"error"`
}

// change admits the visitor of a POST: an operator, with a form of the console or a token of its
// own. Else it answers the request.
func (c *Console) change(w http.ResponseWriter, r *http.Request) (v visitor, ok bool) {
	if v = visitorOf(r); v.role != operator {
		c.cfg.Logger.Warn("console change refused", "path", r.URL.Path, "by", v.role.String(), "peer", r.RemoteAddr)
		c.refuse(w, r, v, http.StatusForbidden, "the role "+v.role.String()+" may not change anything: log in with the token of an operator")
		return v, false
	}
	return v, c.form(w, r, v)
}

// Admit is change for a POST of another room on the listener. report logs its outcome.
func (c *Console) Admit(w http.ResponseWriter, r *http.Request) (report func(err error, about ...any), ok bool) {
	v, ok := c.change(w, r)
	return func(err error, about ...any) { c.audit(r, v, err, about...) }, ok
}

// form reads the form of a POST and checks where it comes from; else it answers the request. A
// request without a session brings a token of its own, which no page from elsewhere has.
func (c *Console) form(w http.ResponseWriter, r *http.Request, v visitor) (ok bool) {
	if err := c.origins.Check(r); err != nil {
		c.refuse(w, r, visitor{}, http.StatusForbidden, "this form comes from another page: "+err.Error())
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			status = http.StatusRequestEntityTooLarge
		}
		c.refuse(w, r, v, status, "cannot read the form: "+err.Error())
		return false
	}
	if v.session != nil && !same(r.PostForm.Get("csrf"), v.session.secret) {
		c.refuse(w, r, v, http.StatusForbidden, "the secret of the form is missing or of an earlier login: load the page again")
		return false
	}
	return true
}

// terminate ends a process.
func (c *Console) terminate(w http.ResponseWriter, r *http.Request) {
	c.act(w, r, "terminate_process", "pid", "pid", c.cfg.Source.Terminate, root+"process?done=terminated&pid=")
}

// drop closes a connection.
func (c *Console) drop(w http.ResponseWriter, r *http.Request) {
	c.act(w, r, "drop_connection", "id", "connection", func(ctx context.Context, id, _ string) error { return c.cfg.Source.Drop(ctx, id) }, root+"connections?dropped=")
}

// cancel gives up what a project does.
func (c *Console) cancel(w http.ResponseWriter, r *http.Request) {
	c.act(w, r, "cancel_project", "id", "project", func(ctx context.Context, id, _ string) error { return c.cfg.Source.Cancel(ctx, id) }, root+"project?done=cancelled&id=")
}

// act makes a change to what a field of the form names, which the log names by key. next is the
// page behind it, without the name.
func (c *Console) act(w http.ResponseWriter, r *http.Request, action, field, key string, do func(ctx context.Context, name, reason string) error, next string) {
	v, ok := c.change(w, r)
	if !ok {
		return
	}
	name, reason := r.PostForm.Get(field), r.PostForm.Get("reason")
	if name == "" || len(name) > maxText || len(reason) > maxText {
		c.refuse(w, r, v, http.StatusBadRequest, fmt.Sprintf("%s must have 1 to %d bytes, reason at most %d", field, maxText, maxText))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callWithin)
	defer cancel()
	err := do(ctx, name, reason)
	c.audit(r, v, err, "action", action, key, name, "reason", reason)
	c.done(w, r, v, err, next+url.QueryEscape(name))
}

// order carries out an order to the cluster.
func (c *Console) order(w http.ResponseWriter, r *http.Request, verb string) {
	v, ok := c.change(w, r)
	if !ok {
		return
	}
	o := ClusterOrder{Verb: verb, Node: r.PostForm.Get("node")}
	partition, reason := r.PostForm.Get("partition"), r.PostForm.Get("reason")
	var err error
	if partition != "" {
		o.Partition, err = strconv.Atoi(partition)
	}
	if err != nil || len(o.Node) > maxText || len(reason) > maxText || verb == "move" && (partition == "" || o.Node == "") {
		c.refuse(w, r, v, http.StatusBadRequest, fmt.Sprintf("partition must be a number, node and reason have at most %d bytes, and a move has a partition and a node", maxText))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), orderWithin)
	defer cancel()
	err = c.cfg.Source.Order(ctx, o)
	c.audit(r, v, err, "action", "cluster_"+verb, "partition", partition, "node", o.Node, "reason", reason)
	c.done(w, r, v, err, root+"cluster?"+url.Values{"done": {verb}}.Encode())
}

// done answers a change: a person by a page, a program by JSON.
func (c *Console) done(w http.ResponseWriter, r *http.Request, v visitor, err error, next string) {
	switch {
	case err != nil && v.session != nil:
		c.render(w, r, statusOf(err), errorTemplate, v, errorView{statusOf(err), err.Error()})
	case err != nil:
		answer(w, statusOf(err), failure{err.Error()})
	case v.session != nil:
		http.Redirect(w, r, next, http.StatusSeeOther)
	default:
		answer(w, http.StatusOK, struct {
			OK bool `json:"ok"`
		}{true})
	}
}

// audit logs a change, whether it was made or not.
func (c *Console) audit(r *http.Request, v visitor, err error, about ...any) {
	about = append(about, "by", v.role.String(), "peer", r.RemoteAddr)
	if v.session != nil {
		about = append(about, "session", v.session.name)
	}
	if err != nil {
		c.cfg.Logger.Warn("console change failed", append(about, "error", err.Error())...)
		return
	}
	c.cfg.Logger.Info("console change", about...)
}

// loginView is what the login form shows.
type loginView struct {
	Next  string
	Error string
}

func (c *Console) loginForm(w http.ResponseWriter, r *http.Request) {
	next := nextOf(r.URL.Query().Get("next"))
	if !c.auth.asks() {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	c.render(w, r, http.StatusOK, loginTemplate, visitor{}, loginView{Next: next})
}

// nextOf returns where a login leads: to a page of the console, or of projects.
func nextOf(path string) string {
	if !strings.HasPrefix(path, root) && !strings.HasPrefix(path, "/exacta/") || strings.HasPrefix(path, root+"login") {
		return root
	}
	return path
}

func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	if !c.form(w, r, visitor{}) {
		return
	}
	form := loginView{Next: nextOf(r.PostForm.Get("next"))}
	if !c.auth.formValid(r.PostForm.Get("csrf")) {
		form.Error = "This form was too old. Please try again."
		c.render(w, r, http.StatusForbidden, loginTemplate, visitor{}, form)
		return
	}
	t := c.auth.inForce()
	role, wait := c.auth.try(&t, r.RemoteAddr, strings.TrimSpace(r.PostForm.Get("token")))
	if wait > 0 {
		c.tooMany(w, r, wait)
		return
	}
	value, s, ok := "", (*session)(nil), false
	if role != stranger {
		value, s, ok = c.auth.begin(&t, role)
	}
	if !ok {
		c.cfg.Logger.Warn("console login failed", "peer", r.RemoteAddr)
		form.Error = "This token is wrong."
		c.render(w, r, http.StatusUnauthorized, loginTemplate, visitor{}, form)
		return
	}
	if old := c.auth.session(r); old != nil {
		c.auth.end(old) // its cookie is replaced
	}
	c.cfg.Logger.Info("console login", "by", role.String(), "peer", r.RemoteAddr, "session", s.name)
	http.SetCookie(w, c.cookie(r, value, int(sessionAge/time.Second)))
	http.Redirect(w, r, form.Next, http.StatusSeeOther)
}

// cookie returns the cookie of a session; an age below 0 removes it. The origin of the form shows
// whether the browser speaks TLS, with a proxy before this listener.
func (c *Console) cookie(r *http.Request, value string, age int) *http.Cookie {
	secure := r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
	return &http.Cookie{Name: cookieOf(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode}
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	s := c.auth.session(r)
	if s == nil {
		http.Redirect(w, r, root, http.StatusSeeOther)
		return
	}
	if !c.form(w, r, visitor{role: s.role, session: s}) {
		return
	}
	c.auth.end(s)
	c.cfg.Logger.Info("console logout", "by", s.role.String(), "peer", r.RemoteAddr, "session", s.name)
	http.SetCookie(w, c.cookie(r, "", -1))
	http.Redirect(w, r, root+"login", http.StatusSeeOther)
}
