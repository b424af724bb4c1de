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
	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// encode makes a whole request of a body without placeholders.
func encode(t *Target, name string, body []byte) ([]byte, error) {
	switch t.Protocol {
	case ProtocolKernel:
		return encodeFrame(name, body)
	case ProtocolToolhost, ProtocolExacta:
		return encodeLine(body)
	case ProtocolThreads:
		return encodeCall(name, body)
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

// encodeCall puts the params of a method on a line (threads §2.4).
func encodeCall(name string, params []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(params), []byte("{")) {
		return nil, errors.New("want a JSON object")
	}
	line := append([]byte(lineHead), strings.Repeat("0", idWidth)...)
	line = jsonx.AppendString(append(line, `","method":`...), name)
	return encodeLine(append(append(append(line, `,"params":`...), params...), '}'))
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
