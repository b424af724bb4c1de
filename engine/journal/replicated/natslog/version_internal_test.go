package natslog

import "testing"

// TestVersions: servers before the first one that syncs in groups are refused.
func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"2.15.0": true, "2.15.2": true, "2.16.0-RC.1": true, "3.0.0": true, "2.15": true,
		"2.14.9": false, "1.99.0": false, "": false, "two": false,
	} {
		if got := recent(version); got != want {
			t.Errorf("version %q: %v", version, got)
		}
	}
}
