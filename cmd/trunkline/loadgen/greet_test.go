package loadgen

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGreeting(t *testing.T) {
	greets := func(protocol, said string) func(answer, want string) {
		return func(answer, want string) { t.Helper(); greeting(t, protocol, said, answer, want) }
	}
	f := greets(ProtocolToolhost, `{"aid":"_auth","token":"t\"1"}`)
	f("{\"ok\":true}\n", "")
	f("{\"status\":\"OK\",\"ok\":true}\r\n", "")
	f("{\"ok\":false,\"error\":\"auth_failed\"}\n", "refuses the token: auth_failed")
	f("hello\n", errMalformed.Error())
	f("silence", "timeout")
	f(strings.Repeat("x", keptBuffer), errTooLarge.Error())
	f(strings.Repeat(" ", keptBuffer-len(`{"ok":true}`)-1)+"{\"ok\":true}\n", "")
	f = greets(ProtocolThreads, `{"id":"000000000000","method":"auth","params":{"protocol":"threads/1","token":"t\"1"}}`)
	f("{\"id\":\"000000000000\",\"ok\":true,\"result\":{}}\n", "")
	f("{\"id\":\"000000000000\",\"ok\":false,\"error\":{\"code\":\"UNAUTHORIZED\"}}\n", "refuses the token: UNAUTHORIZED")
	f("{\"id\":null,\"ok\":false,\"error\":{\"code\":\"RATE_LIMITED\"}}\n", "refuses the token: RATE_LIMITED")
}

// greeting lets a server answer to a greeting, and wants what it gets and what comes of it.
func greeting(t *testing.T, protocol, greets, answer, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		ours, theirs := net.Pipe()
		defer ours.Close()
		said := make(chan string, 1)
		go func() {
			defer theirs.Close()
			line, err := readLine(theirs)
			said <- string(line)
			if err == nil && answer != "silence" {
				_, _ = io.WriteString(theirs, answer)
			}
			_, _ = theirs.Read(make([]byte, 1))
		}()
		ctx, cancel := context.WithTimeout(t.Context(), dialTimeout)
		defer cancel()
		began := time.Now()
		_, err := (&Target{Protocol: protocol, Token: `t"1`}).greet(ctx, ours)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", answer, err, want)
		}
		if got := <-said; got != greets || time.Since(began) > dialTimeout {
			t.Errorf("said %s, took %s", got, time.Since(began))
		}
		if err != nil {
			return
		}
		// The deadline was for the greeting only.
		time.Sleep(2 * dialTimeout)
		if _, err := ours.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	})
}

func TestGreetingNobody(t *testing.T) {
	f := func(target Target) {
		t.Helper()
		ours, theirs := net.Pipe()
		theirs.Close()
		if _, err := target.greet(t.Context(), ours); err != nil {
			t.Error(err)
		}
	}
	f(Target{Protocol: ProtocolToolhost})
	f(Target{Protocol: ProtocolKernel, Token: "x"})
}

func TestDialling(t *testing.T) {
	_, err := (&Target{Protocol: ProtocolKernel, Addr: "nowhere"}).dial(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "cannot use address") {
		t.Error(err)
	}
	addr := lineServer(t, "")
	for _, scheme := range []string{"", "tcp://"} {
		target := Target{Protocol: ProtocolToolhost, Addr: scheme + addr}
		nc, err := target.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		if network, place, secure, err := target.Place(); network != "tcp" || place != addr || secure || err != nil {
			t.Errorf("%s %s %v %v", network, place, secure, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, scheme := range []string{"tcp://", "tls://"} {
		if _, err := (&Target{Protocol: ProtocolToolhost, Addr: scheme + addr}).dial(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
