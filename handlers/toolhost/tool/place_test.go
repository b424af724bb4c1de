package tool

import (
	"sync"
	"testing"
	"time"
)

func TestEndWithin(t *testing.T) {
	var running sync.WaitGroup
	if !EndWithin(&running, time.Minute) {
		t.Error("nothing runs, and it has not ended")
	}
	running.Add(1)
	if EndWithin(&running, time.Millisecond) {
		t.Error("ended while one runs")
	}
	running.Done()
}
