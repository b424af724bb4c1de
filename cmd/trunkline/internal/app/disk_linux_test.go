package app

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/ops"
)

// TestDiskIsMeasured: metrics and /store have what the files of the store really take, those of the
// rows and what logs have laid out ahead included.
func TestDiskIsMeasured(t *testing.T) {
	e := startEverywhere(t)
	fill(t, e.dial(e.addr("kernel ipc")), 60)
	e.askThreads("/v1/create_thread", `{"workspace_id":"wk","title":"t","type":"workflow","participants":["lead"]}`)
	var all, logs, rows, shown uint64
	metric := func(name string) uint64 {
		t.Helper()
		_, text := e.get("/metrics")
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s", name)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return uint64(n)
	}
	var want, wantLogs, wantRows uint64
	var s ops.Store
	e.load("/store", &s)
	dir := s.Dir
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // files may change meanwhile
		want, wantLogs = allocated(t, dir)
		wantRows, _ = allocated(t, filepath.Join(dir, "rows"))
		e.load("/store", &s)
		all, logs, rows, shown = metric("trunkline_store_disk_bytes"), metric("trunkline_store_wal_bytes"),
			metric("trunkline_rows_disk_bytes"), s.Disk.UsedBytes
		if all == want && logs == wantLogs && rows == wantRows && shown == want || time.Now().After(deadline) {
			break
		}
	}
	t.Logf("store %d, logs %d, rows %d, /store %d; on the disk %d, %d, %d", all, logs, rows, shown, want, wantLogs,
		wantRows)
	if all != want || logs != wantLogs || rows != wantRows || shown != want || wantLogs == 0 || wantRows == 0 {
		t.Errorf("the metrics are not what is on the disk")
	}
}

// allocated returns what a directory takes on the disk, and its log files of it.
func allocated(t *testing.T, dir string) (all, logs uint64) {
	t.Helper()
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err != nil || syscall.Lstat(path, &st) != nil || seen[st.Ino] {
			return nil // it is gone, or has been counted
		}
		seen[st.Ino] = true
		all += uint64(st.Blocks) * 512
		if strings.HasSuffix(path, ".log") && filepath.Dir(path) == dir {
			logs += uint64(st.Blocks) * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, logs
}
