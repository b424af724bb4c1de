package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// threadLines is a client of lines of agent threads.
type threadLines struct {
	net.Conn
	in *bufio.Reader
}

// lines connects to the lines of a node, and shows a token.
func (r *threadRig) lines(n *clusterNode) (*threadLines, error) {
	nc, err := net.Dial("tcp", n.addr("threads lines"))
	if err != nil {
		return nil, err
	}
	c := &threadLines{nc, bufio.NewReader(nc)}
	if _, err = c.ask(fmt.Sprintf(`{"id":1,"method":"auth","params":{"protocol":"threads/1","token":%q}}`, r.bearer)); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ask sends a request and returns its answer, which is none of an error.
func (c *threadLines) ask(request string) (answer string, err error) {
	_ = c.SetDeadline(time.Now().Add(answerPatience))
	if _, err = io.WriteString(c, request+"\n"); err != nil {
		return "", err
	}
	answer, err = c.in.ReadString('\n')
	if err == nil && !strings.Contains(answer, `"ok":true`) {
		err = fmt.Errorf("the answer is %s", answer)
	}
	return answer, err
}

// lookAtSurfaces waits until each surface of a node shows a thread and a message of it.
func (r *threadRig) lookAtSurfaces(n *clusterNode, thread, message string) {
	r.t.Helper()
	r.until("lines at node "+n.id, func() bool {
		c, err := r.lines(n)
		if err != nil {
			return false
		}
		defer c.Close()
		answer, err := c.ask(fmt.Sprintf(`{"id":2,"method":"read_messages","params":{"thread_id":%q}}`, thread))
		return err == nil && strings.Contains(answer, fmt.Sprintf(`"body":%q`, message))
	})
	r.until("MCP at node "+n.id, func() bool {
		var got struct {
			Result json.RawMessage `json:"result"`
		}
		err := r.ask(n, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_messages","arguments":{"thread_id":%q}}}`, thread), &got)
		return err == nil && strings.Contains(string(got.Result), message)
	})
	r.until("the audit log at node "+n.id, func() bool {
		req, err := http.NewRequest(http.MethodGet, "http://"+n.addr("threads http")+"/v1/audit", nil)
		if err != nil {
			r.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.bearer)
		resp, err := r.web.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "mcp.create_thread")
	})
}
