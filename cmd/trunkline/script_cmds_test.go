package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdCode runs a command and wants exactly this exit code: code 2 trunkline nope. The commands
// stdout and stderr look at its output.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [args]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// waitFor is how long a script waits for a server before it gives up; it is a bound on failure, not
// a measurement.
const waitFor = 2 * time.Minute

// cmdWaitLine waits until a file has a line that matches, and puts its first group into an
// environment variable: waitline FILE REGEXP [NAME].
func cmdWaitLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: waitline file regexp [name]")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var text []byte
	for deadline := time.Now().Add(waitFor); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text, _ = os.ReadFile(ts.MkAbs(args[0]))
		if m := re.FindSubmatch(text); m != nil {
			if len(args) == 3 {
				ts.Setenv(args[2], string(m[1]))
			}
			return
		}
	}
	ts.Fatalf("%s never had a line that matches %s:\n%s", args[0], args[1], text)
}

// cmdSend sends a file, in which $WORK is expanded, to a server and writes the first lines that
// come to the file heard: send ADDR LINES FILE.
func cmdSend(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: send addr lines file")
	}
	network, addr := "tcp", args[0]
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		network, addr = "unix", path
	}
	c, err := net.DialTimeout(network, addr, waitFor)
	ts.Check(err)
	defer c.Close()
	ts.Check(c.SetDeadline(time.Now().Add(waitFor)))
	_, err = io.WriteString(c, strings.ReplaceAll(ts.ReadFile(args[2]), "$WORK", ts.Getenv("WORK")))
	ts.Check(err)
	lines, err := strconv.Atoi(args[1])
	ts.Check(err)
	var heard []byte
	for in := bufio.NewReader(c); lines > 0; lines-- {
		line, err := in.ReadBytes('\n')
		heard = append(heard, line...)
		if err != nil {
			ts.Fatalf("%v behind %s", err, heard)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("heard"), heard, 0o600))
}

// cmdCert writes a self-signed certificate for 127.0.0.1 and its key: cert CERT KEY.
func cmdCert(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cert certfile keyfile")
	}
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	ts.Check(err)
	key, err := x509.MarshalPKCS8PrivateKey(priv)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}
