//go:build linux

package main

import (
	"testing"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/engine/link"
)

// start is the moment at which the steps are made.
var start = link.Instant{Mono: int64(time.Hour), Wall: 1767323045000}

// value returns a JSON text as a member of a request.
func value(tb testing.TB, text string) mpack.Value {
	tb.Helper()
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return mpack.ReadValue(b)
}
