package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"trunkline/handlers/ipc/client"
)

// digestNumber returns one number for all digests.
func digestNumber(d *client.Digest) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(d.Kernel, " ")+"\n"+strings.Join(d.Orchestration, " "))
	return fmt.Sprintf("%016x", h.Sum64())
}

// perRow is how many digests stand in one row.
const perRow = 4

func digestRows(t *sheet, d *client.Digest, whole string) {
	note := ""
	switch {
	case d.Index == 0: // without a journal, changes are not counted
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
