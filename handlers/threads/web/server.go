package web

import (
	"cmp"
	"net"
	"net/http"
	"sync"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/method"
)

// Server serves agent threads over HTTP. Any goroutine may call its methods.
type Server struct {
	*httpd.Server
	cfg    Config
	limits Limits
	routes map[string]*route // by raw path; never written after New

	challenge method.Challenge
	exchanges sync.Pool
	metrics   metrics
}

// New returns a server. Nothing runs before Serve.
func New(cfg Config) *Server {
	cfg.Surface = cfg.WithDefaults()
	s := &Server{cfg: cfg, limits: cfg.Limits.withDefaults(), challenge: method.NewChallenge(cfg.ResourceMetadata)}
	s.exchanges.New = func() any { return new(exchange) }
	s.addRoutes()
	book := httpd.NewBook("threads", cmp.Or(cfg.Name, "threads-http"))
	s.Server = httpd.NewServer(httpd.Config{What: "HTTP", Book: book, Connections: s.limits.Connections, Logger: cfg.Logger,
		HTTP: &http.Server{
			Handler:                      http.HandlerFunc(s.serveHTTP),
			DisableGeneralOptionsHandler: true, // OPTIONS * is a path we do not have, like any other
			ReadHeaderTimeout:            s.limits.HeaderTimeout,
			WriteTimeout:                 s.limits.WriteTimeout,
			IdleTimeout:                  s.limits.IdleTimeout,
			MaxHeaderBytes:               s.limits.HeaderBytes,
		}})
	if cfg.Forward != nil {
		s.HTTP.ConnState = func(nc net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				cfg.Forward.Closed(nc)
			}
		}
	}
	return s
}
