package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// askSubject reaches all servers from their system account.
const askSubject = "$SYS.REQ.SERVER.PING.VARZ"

// Bounds of asking servers.
const (
	maxServers = 1024
	// askQuiet: without an answer for so long, no further one is waited for.
	askQuiet = time.Second
)

// serverState is the answer of one server.
type serverState struct {
	Server server.ServerInfo `json:"server"`
	Data   struct {
		JetStream server.JetStreamVarz `json:"jetstream"`
	} `json:"data"`
}

// askServers asks all servers what they are, over a connection to their system account, and returns
// the answers in the order of their names. It waits until expect servers have answered, 0 for an
// unknown number, or none has for a while.
func askServers(ctx context.Context, system *nats.Conn, expect int) (answers []serverState, err error) {
	texts, err := gather(ctx, system, askSubject, nil, expect)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		var a serverState
		if err := json.Unmarshal(text, &a); err != nil {
			return nil, fmt.Errorf("cannot read the answer of a server: %w", err)
		}
		answers = append(answers, a)
	}
	slices.SortFunc(answers, func(a, b serverState) int { return strings.Compare(a.Server.Name, b.Server.Name) })
	return answers, nil
}

// gather asks all who listen to a subject. It waits until expect have answered, 0 for an unknown
// number, or none has for a while.
func gather(ctx context.Context, conn *nats.Conn, subject string, question []byte, expect int) (answers [][]byte, err error) {
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err = conn.PublishRequest(subject, inbox, question); err != nil {
		return nil, err
	}
	for len(answers) < maxServers && (expect == 0 || len(answers) < expect) {
		quiet, cancel := context.WithTimeout(ctx, askQuiet)
		msg, err := sub.NextMsgWithContext(quiet)
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			break
		}
		answers = append(answers, msg.Data)
	}
	return answers, nil
}
