package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// settle is how long a server may take to put away what it needed to greet a crowd.
const settle = 300 * time.Millisecond

// idle measures what a server holds for connections that are silent.
func (b *bench) idle() error {
	sizes, each := tens(min(1000, b.o.idle), b.o.idle), [][]float64{}
	for _, n := range sizes {
		var figures []float64
		for range min(b.o.rounds, 3) {
			v, err := b.silent(n)
			if err != nil {
				return err
			}
			figures = append(figures, v)
		}
		each = append(each, figures)
	}
	b.r.idle(sizes, each)
	return nil
}

// idle makes a chart and a goal of the bytes per connection that crowds of all sizes showed, each
// some times.
func (r *report) idle(sizes []int, each [][]float64) {
	memory := goal.Chart{Name: "idle", Title: "Resident memory of an idle TCP connection, without what the kernel holds", X: "connections", Y: "bytes/connection"}
	g := goal.Goal{ID: "G10", What: "resident bytes per idle connection", Must: 4096, Moonshot: 2048}
	for i, n := range sizes {
		v := goal.Median(each[i])
		memory.Add("RSS", float64(n), v)
		g.Add(count(n)+" connections", v)
	}
	r.Charts = append(r.Charts, memory)
	r.evaluate(g)
}

// silent opens n connections to a server of its own and returns by how many bytes each made it
// grow. The first connection is not counted: with it comes what a server makes once.
func (b *bench) silent(n int) (each float64, err error) {
	s, err := b.start(fmt.Sprintf("kernel.max_connections=%d", n+spareConns), "kernel.read_timeout_secs=0")
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	grow := func(to int) (int64, error) {
		for len(all) < to {
			c, err := greet(s.Addr)
			if err != nil {
				return 0, fmt.Errorf("cannot open connection %d of %d: %w", len(all)+1, to, err)
			}
			all = append(all, c)
		}
		time.Sleep(settle)
		m, err := s.Memory()
		return m.RSS, err
	}
	one, err := grow(1)
	if err != nil {
		return 0, err
	}
	many, err := grow(1 + n)
	return float64(many-one) / float64(n), err
}

// greet connects and asks once.
func greet(addr string) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.SetDeadline(time.Now().Add(10*time.Second)), askOnce(c)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func askOnce(c net.Conn) error {
	if _, err := c.Write(load.CountedRequest(0, "kernel", "GetProcessCounts")); err != nil {
		return err
	}
	var buf [4096]byte
	for n := 0; n < len(buf); {
		more, err := c.Read(buf[n:])
		if err != nil {
			return err
		}
		n += more
		if typ, _, _, ok, err := load.ParseFrame(buf[:n]); ok || err != nil {
			if err == nil && typ != load.Response {
				err = fmt.Errorf("cannot take frame 0x%02X as a reply", typ)
			}
			return err
		}
	}
	return errors.New("cannot take a reply this large")
}
