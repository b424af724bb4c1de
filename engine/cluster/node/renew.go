package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"trunkline/engine/connection"
)

const (
	// renewFile is in the directory of a node that is to copy everything from the others when it
	// starts again.
	renewFile = "trunkline-renew.json"
	// damagedDir has the files that such a node gave up. It keeps those of the last time.
	damagedDir = "jetstream.damaged"
	// renewAfter is how long a node that gives its files up has stopped before: what it has
	// acknowledged last reaches the others meanwhile.
	renewAfter = time.Second
)

// renewal is what that file holds: the starts of the servers of the other nodes.
type renewal struct {
	Others map[string]string `json:"others"`
}

// Renew has the next start of this node begin with an empty directory and copy everything from the
// others. The caller has found that its files are damaged and that each other node has all of the
// streams, and closes the node. The next start keeps the files after all where another node does
// not answer, or was started again in between: what this node has acknowledged may be nowhere else.
func (n *Node) Renew(ctx context.Context) error {
	e, ok := n.server.(*embedded)
	if !ok {
		return errors.New("cannot rebuild the streams: servers of an operator keep them")
	}
	others, err := e.cfg.others(ctx)
	if err != nil {
		return fmt.Errorf("cannot rebuild the streams: %w", err)
	}
	text, err := json.Marshal(renewal{others})
	if err != nil {
		return err
	}
	return e.cfg.writeRenewal(text)
}

// others returns the start of the server of each other node. All have to answer.
func (cfg *Config) others(ctx context.Context) (map[string]string, error) {
	others := make(map[string]string)
	for _, a := range cfg.ask(ctx, "") {
		switch {
		case a.Node == cfg.Node:
		case a.Unreachable != nil:
			return nil, fmt.Errorf("node %q does not answer: %w", a.Node, a.Unreachable)
		case a.Refused != nil:
			return nil, a.Refused
		default:
			others[a.Node] = a.start
		}
	}
	return others, nil
}

func (cfg *Config) writeRenewal(text []byte) error {
	f, err := os.OpenFile(filepath.Join(cfg.Dir, renewFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = syncDirectory(cfg.Dir)
	}
	return err
}

// renew gives up the files of a node for which Renew was called, if that is still safe. The
// directory is locked.
func (cfg *Config) renew(ctx context.Context) error {
	mark := filepath.Join(cfg.Dir, renewFile)
	f, err := os.Open(mark)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var was renewal
	err = json.NewDecoder(f).Decode(&was)
	if err = errors.Join(err, f.Close()); err == nil {
		err = cfg.unchanged(ctx, was.Others)
	}
	if err != nil {
		cfg.Logger.Warn("this node keeps its damaged copy of the journal", "dir", cfg.Dir, "err", err)
	} else if err = cfg.giveUp(); err != nil {
		return err
	}
	if err = os.Remove(mark); err != nil {
		return err
	}
	return syncDirectory(cfg.Dir)
}

// unchanged returns why the others may not have all that this node has acknowledged.
func (cfg *Config) unchanged(ctx context.Context, was map[string]string) error {
	if !connection.Pause(ctx, renewAfter) {
		return ctx.Err()
	}
	others, err := cfg.others(ctx)
	if err != nil {
		return err
	}
	if len(was) == 0 || len(others) != len(was) {
		return fmt.Errorf("%d other nodes were asked, now there are %d", len(was), len(others))
	}
	for node, start := range others {
		if was[node] != start {
			return fmt.Errorf("node %q was started again meanwhile", node)
		}
	}
	return nil
}

// giveUp moves the files of the server away.
func (cfg *Config) giveUp() error {
	old := filepath.Join(cfg.Dir, damagedDir)
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	err := os.Rename(filepath.Join(cfg.Dir, storeDir), old)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cfg.Logger.Warn("damaged replica moved away, copying the journal from the other nodes", "moved", old)
	return syncDirectory(cfg.Dir)
}
