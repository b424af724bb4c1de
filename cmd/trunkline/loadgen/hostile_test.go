package loadgen

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// attack is what a server does with one connection.
type attack func(nc net.Conn)

// underAttack runs a small plan against such a server, in a bubble. Whatever the server does, the
// run ends in time, and each request that was due is either done or failed.
func underAttack(t *testing.T, protocol string, serve attack, check func(r *Result)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		p := Plan{
			Target: Target{Protocol: protocol, Addr: "h:1"}, Schedule: Schedule{To: 100}, Mix: []Share{{Name: "GetProcessCounts", Weight: 1}},
			Conns: 2, Depth: 4, Duration: 2 * time.Second, Timeout: 500 * time.Millisecond, Interval: time.Second,
		}
		if protocol == ProtocolHTTP {
			p.Target.Addr = "http://h"
		}
		p.Target.Dial = func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				serve(theirs)
			}()
			return ours, nil
		}
		var samples []Sample
		r, err := run(t.Context(), p, func(s Sample) { samples = append(samples, s) }, timerAlarm, secret)
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, r, samples)
		if r.Total.Due != 200 || r.Total.Done+r.Total.Failed != 200 || r.Total.To > 2700*time.Millisecond || r.MissedSchedule {
			t.Errorf("%s: late %v by %s: %+v", protocol, r.MissedSchedule, r.LatestLag, r.Total)
		}
		check(r)
	})
}

var protocols = []string{ProtocolKernel, ProtocolToolhost, ProtocolHTTP}

// good are replies to any request of a protocol, but for the kernel's, which needs the request's
// id.
var good = map[string]string{
	ProtocolToolhost: "{\"ok\":true}\n",
	ProtocolHTTP:     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
}

// eachRequest hands out one good reply for each request that comes, until do returns false.
func eachRequest(nc net.Conn, protocol string, do func(reply string) bool) {
	in := bufio.NewReader(nc)
	switch protocol {
	case ProtocolKernel:
		eachFrame(nc, func(payload []byte) bool {
			var r mpack.Request
			var sc mpack.Scanner
			sc.ParseRequest(payload, &r)
			return do(string(replyFrame(frame.Response, append(mpack.AppendResponseHead(nil, r.ID), 0x80))))
		})
	case ProtocolToolhost:
		for _, err := in.ReadString('\n'); err == nil && do(good[protocol]); {
			_, err = in.ReadString('\n')
		}
	case ProtocolHTTP:
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if !do(good[protocol]) {
				return
			}
		}
	}
}

func send(nc net.Conn, text string) bool {
	_, err := io.WriteString(nc, text)
	return err == nil
}

// allFailed checks that nothing was done, and that failures of one of these kinds were among the
// reasons.
func allFailed(t *testing.T, protocol string, kinds ...string) func(r *Result) {
	return func(r *Result) {
		t.Helper()
		some := slices.ContainsFunc(kinds, func(kind string) bool { return r.Total.Errors[kind] > 0 })
		if r.Total.Done != 0 || !some {
			t.Errorf("%s: want some of %q: %+v", protocol, kinds, r.Total)
		}
	}
}

func TestAServerThatClosesAtOnce(t *testing.T) {
	for _, p := range protocols {
		underAttack(t, p, func(net.Conn) {}, func(r *Result) {
			allFailed(t, p, ErrorLost, ErrorUnconnected, ErrorTimeout)(r)
			if r.Total.Lost == 0 {
				t.Errorf("%s: no connection was lost", p)
			}
		})
	}
}

func TestAServerThatClosesAmidAReply(t *testing.T) {
	for _, p := range protocols {
		underAttack(t, p, func(nc net.Conn) {
			eachRequest(nc, p, func(reply string) bool { return send(nc, reply[:len(reply)/2]) && false })
		}, allFailed(t, p, ErrorLost))
	}
}

func TestAServerThatSendsGarbage(t *testing.T) {
	for _, p := range protocols {
		underAttack(t, p, func(nc net.Conn) {
			eachRequest(nc, p, func(string) bool { return send(nc, "\xff\x00 what is this\r\n\r\n") })
		}, allFailed(t, p, errorProtocol))
	}
}

// TestAServerThatSaysTooMuch: a reply without an end is not kept in memory for ever.
func TestAServerThatSaysTooMuch(t *testing.T) {
	tooMuch := map[string]string{
		ProtocolKernel:   string(binary.BigEndian.AppendUint32(nil, maxReply+1)) + "x",
		ProtocolToolhost: strings.Repeat("x", maxReply+1),
		ProtocolHTTP:     "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
	}
	for _, p := range protocols {
		underAttack(t, p, func(nc net.Conn) {
			eachRequest(nc, p, func(string) bool { return send(nc, tooMuch[p]) })
		}, allFailed(t, p, errorProtocol))
	}
}

// TestAServerThatNeverAnswers: the places that its silence takes are not the generator's lag, which
// underAttack looks at.
func TestAServerThatNeverAnswers(t *testing.T) {
	for _, p := range protocols {
		underAttack(t, p, func(nc net.Conn) { eachRequest(nc, p, func(string) bool { return true }) }, func(r *Result) {
			allFailed(t, p, ErrorTimeout)(r)
			if r.Total.Errors[ErrorTimeout] != 200 || r.LatestLag > lagTolerance {
				t.Errorf("%s: lag %s, %+v", p, r.LatestLag, r.Total)
			}
		})
	}
}

func TestAServerThatAnswersSomebodyElse(t *testing.T) {
	underAttack(t, ProtocolKernel, func(nc net.Conn) {
		eachRequest(nc, ProtocolKernel, func(string) bool { return send(nc, string(answer(0xffff0000fff))) })
	}, func(r *Result) {
		allFailed(t, ProtocolKernel, ErrorTimeout)(r)
		if r.Total.Late < 100 || r.Total.Lost != 0 {
			t.Errorf("%d late, %d lost", r.Total.Late, r.Total.Lost)
		}
	})
}

// TestAServerThatAnswersTwice: the second reply belongs to no request.
func TestAServerThatAnswersTwice(t *testing.T) {
	for _, p := range protocols {
		underAttack(t, p, func(nc net.Conn) {
			eachRequest(nc, p, func(reply string) bool { return send(nc, reply+reply) })
		}, func(r *Result) {
			if r.Total.Done != 200 || r.Total.Late != 200 {
				t.Errorf("%s: %+v", p, r.Total)
			}
		})
	}
}

// TestAServerThatDrips sends every byte by itself.
func TestAServerThatDrips(t *testing.T) {
	for _, p := range protocols {
		underAttack(t, p, func(nc net.Conn) {
			eachRequest(nc, p, func(reply string) bool {
				for i := range len(reply) {
					time.Sleep(100 * time.Microsecond)
					if !send(nc, reply[i:i+1]) {
						return false
					}
				}
				return true
			})
		}, func(r *Result) {
			if r.Total.Done != 200 {
				t.Errorf("%s: %+v", p, r.Total)
			}
		})
	}
}
