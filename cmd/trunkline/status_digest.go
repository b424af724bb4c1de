package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"trunkline/codec/mpack"
)

// digests are the member "digest" of the reply.
type digests struct {
	Kernel        []string `json:"kernel"`
	Orchestration []string `json:"orchestration"`
	Index         uint64   `json:"index"`
	Through       uint64   `json:"through"`
}

// question is the body of the request.
func (s *kernelState) question() []byte {
	if s.digest == nil {
		return nil
	}
	return mpack.AppendBool(mpack.AppendStr(mpack.AppendMap(nil, 1), "digest"), true)
}

// read takes the digests from a status and returns one number for all.
func (d *digests) read(status json.RawMessage) (string, error) {
	var reply struct {
		Digest *digests `json:"digest"`
	}
	if err := json.Unmarshal(status, &reply); err != nil {
		return "", fmt.Errorf("cannot understand the digest: %w", err)
	}
	if reply.Digest == nil {
		return "", errors.New("the server gives no digest: it is older than this question")
	}
	*d = *reply.Digest
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(d.Kernel, " ")+"\n"+strings.Join(d.Orchestration, " "))
	return fmt.Sprintf("%016x", h.Sum64()), nil
}

// perRow is how many digests stand in one row.
const perRow = 4

func (d *digests) rows(t *sheet, whole string) {
	note := ""
	switch {
	case d.Index == 0: // no journal: nobody can tell whether something changed
	case d.Index == d.Through:
		note = fmt.Sprintf(" (at index %d)", d.Index)
	default:
		note = fmt.Sprintf(" (of no one moment: %d records were written meanwhile)", d.Through-d.Index)
	}
	t.add("digest", whole+note)
	list := func(name string, sums []string) {
		for from := 0; from < len(sums); from += perRow {
			to := min(from+perRow, len(sums))
			t.add(fmt.Sprintf("%s %d-%d", name, from, to-1), strings.Join(sums[from:to], " "))
		}
	}
	list("kernel", d.Kernel[:max(len(d.Kernel)-1, 0)])
	if n := len(d.Kernel); n > 0 {
		t.add("kernel common", d.Kernel[n-1])
	}
	list("orchestration", d.Orchestration)
}
