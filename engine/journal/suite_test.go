package journal_test

import (
	"testing"

	"pgregory.net/rapid"
)

// runSuite runs all tests on places that place makes, each empty and its own.
func runSuite(t *testing.T, place func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, p Place)
	}{
		{"Order", testOrder},
		{"LargeRecords", testLargeRecords},
		{"Epochs", testEpochs},
		{"Blocks", testBlocks},
		{"Generations", testSnapshots},
		{"Truncation", testTruncation},
		{"LastGenerationDamaged", testLastSnapshotDamaged},
		{"TornTail", testTornTail},
		{"Damage", testDamage},
		{"Recovery", testRecovery},
		{"Overload", testOverload},
		{"Failure", testFailure},
		{"GroupCommit", testGroupCommit},
		{"Crash", testCrash},
		{"Concurrent", testConcurrent},
		{"Allocations", testAllocations},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, place(t)) })
	}
	t.Run("Model", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			runProgram(rt, place(t), rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(rt, "program"))
		})
	})
}
