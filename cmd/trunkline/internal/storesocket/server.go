package storesocket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"trunkline/engine/reactor"
)

// maxClients bounds the connections, and with them the checkpoints that there are at a time.
const maxClients = 4

// askWithin is how long a client may take for its request, and for reading an answer.
const askWithin = 5 * time.Second

// Config is what a Server needs.
type Config struct {
	// Store is the directory of the store, which this process has open.
	Store string
	// Take makes a checkpoint. release removes it, and is called once if there is no error.
	Take   func(ctx context.Context) (c Checkpoint, release func(), err error)
	Logger *slog.Logger
}

// Server answers the verbs of the store.
type Server struct {
	cfg    Config
	ln     net.Listener
	done   func()
	ctx    context.Context
	cancel context.CancelFunc
	places chan struct{}
	tasks  sync.WaitGroup
}

// Serve listens in the directory of the store and answers until Close.
func Serve(c Config) (*Server, error) {
	if err := os.MkdirAll(filepath.Join(c.Store, Dir), 0o700); err != nil {
		return nil, err
	}
	path, done, err := address(c.Store)
	if err != nil {
		return nil, err
	}
	ln, err := reactor.Listen("unix://" + path)
	if err != nil {
		done()
		return nil, err
	}
	s := &Server{cfg: c, ln: ln, done: done, places: make(chan struct{}, maxClients)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.tasks.Go(s.accept)
	return s, nil
}

// Close ends what is asked, removes every checkpoint and returns when that is done. Nil does
// nothing.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.cancel()
	_ = s.ln.Close()
	s.tasks.Wait()
	s.done()
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of this connection, or no descriptor is left
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case s.places <- struct{}{}:
			s.tasks.Go(func() {
				s.serve(c)
				<-s.places
			})
		default:
			reply(c, answer{Error: fmt.Sprintf("%d backups are being made already", maxClients)})
			_ = c.Close()
		}
	}
}

// reply writes one line; a client that is gone does not get it.
func reply(c net.Conn, a answer) {
	_ = c.SetWriteDeadline(time.Now().Add(askWithin))
	_ = json.NewEncoder(c).Encode(a)
}

// serve takes the one request of a connection.
func (s *Server) serve(c net.Conn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stop := context.AfterFunc(s.ctx, func() { _ = c.Close() })
	defer stop()
	if err := readRequest(c); err != nil {
		reply(c, answer{Error: err.Error()})
		return
	}
	s.tasks.Go(func() {
		_, _ = io.Copy(io.Discard, c) // until the client closes it
		cancel()
	})
	made, release, err := s.cfg.Take(ctx)
	if err != nil {
		s.cfg.Logger.Warn("cannot make a checkpoint of the store", "error", err)
		reply(c, answer{Error: err.Error()})
		return
	}
	reply(c, answer{Checkpoint: made})
	<-ctx.Done()
	release()
}

// readRequest reads the line, and nothing behind it.
func readRequest(c net.Conn) error {
	_ = c.SetReadDeadline(time.Now().Add(askWithin))
	line, err := bufio.NewReader(io.LimitReader(c, int64(len(request)))).ReadString('\n')
	_ = c.SetReadDeadline(time.Time{})
	if err != nil || line != request {
		return fmt.Errorf("cannot read the request: %q, want %q", line, request)
	}
	return nil
}
