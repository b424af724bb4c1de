package loadgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// compile makes the message of one share.
func compile(t *Target, s *Share, id identity) (*message, error) {
	m, err := compileBody(t, s, id)
	if err != nil {
		return nil, fmt.Errorf("cannot use the body of %s: %w", s.Name, err)
	}
	return m, nil
}

func compileBody(t *Target, s *Share, id identity) (*message, error) {
	parts, pid, err := parse(string(s.Body), id)
	if err != nil {
		return nil, err
	}
	if pid && t.Protocol != ProtocolKernel {
		return nil, errors.New("cannot use placeholder {{pid}}: only the kernel protocol has processes")
	}
	low, err := encode(t, s.Name, parts.fill(true))
	if err != nil {
		return nil, err
	}
	high, err := encode(t, s.Name, parts.fill(false))
	if err != nil {
		return nil, err
	}
	patches, ok := findPatches(low, high, parts.holes, t.Protocol == ProtocolKernel)
	if !ok {
		return nil, errors.New("cannot find its placeholders again: a key given twice has one")
	}
	m := &message{bytes: low, patches: patches, pid: pid}
	if t.Protocol == ProtocolKernel {
		m.id = frame.HeaderSize + len("\x84\xa2id") + 1
	}
	return m, nil
}

// encode makes a whole request of a body without placeholders.
func encode(t *Target, name string, body []byte) ([]byte, error) {
	switch t.Protocol {
	case ProtocolKernel:
		return encodeFrame(name, body)
	case ProtocolToolhost:
		return encodeLine(body)
	}
	return encodeHTTP(t, body)
}

func encodeFrame(name string, body []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, errors.New("want a JSON object")
	}
	packed, err := transcode.EncodeJSON(body)
	if err != nil {
		return nil, err
	}
	service, method, _ := strings.Cut(name, ".")
	out := frame.Begin(nil, frame.Request)
	out = mpack.AppendRequest(out, strings.Repeat("0", idWidth), service, method, string(packed))
	frame.Finish(out, 0)
	return out, nil
}

// encodeLine puts a request on one line.
func encodeLine(body []byte) ([]byte, error) {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return nil, fmt.Errorf("want JSON: %w", err)
	}
	if line.Len() == 0 || line.Bytes()[0] != '{' {
		return nil, errors.New("want a JSON object")
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

func encodeHTTP(t *Target, body []byte) ([]byte, error) {
	if !json.Valid(body) {
		return nil, errors.New("want JSON")
	}
	u, err := url.Parse(t.Addr)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("POST " + pathOf(u) + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: trunkline-bench\r\n")
	out.WriteString("Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	out.Write(body)
	return out.Bytes(), nil
}

// defaultPath is where a server takes envelopes (envelope §2.3).
const defaultPath = "/api/v1/process"

func pathOf(u *url.URL) string {
	if p := u.RequestURI(); p != "/" || strings.HasSuffix(u.String(), "/") {
		return p
	}
	return defaultPath
}
