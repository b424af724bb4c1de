package loadgen

import (
	"context"
	"fmt"
	"net"
	"time"

	"trunkline/codec/jsonx"
)

// greet does what a connection needs before its first request: for toolhost lines, to authenticate
// (toolhost §6.2).
func (t *Target) greet(ctx context.Context, nc net.Conn) error {
	if t.Protocol != ProtocolToolhost || t.Token == "" {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := nc.SetDeadline(deadline); err != nil {
			return err
		}
	}
	line := jsonx.AppendString([]byte(`{"aid":"_auth","token":`), t.Token)
	if _, err := nc.Write(append(line, "}\n"...)); err != nil {
		return err
	}
	answer, err := readLine(nc)
	if err != nil {
		return err
	}
	var r reply
	if err := newLines().read(answer, &r); err != nil {
		return err
	}
	if !r.ok {
		return fmt.Errorf("the server refuses the token: %s", r.code)
	}
	return nc.SetDeadline(time.Time{})
}

// readLine reads one line and not a byte more: what follows belongs to the first request.
func readLine(nc net.Conn) ([]byte, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < keptBuffer; {
		if _, err := nc.Read(one); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
		line = append(line, one[0])
	}
	return nil, errTooLarge
}
