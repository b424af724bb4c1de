package load

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetrics(t *testing.T) {
	const page = "# HELP a b\n# TYPE a gauge\na 1.5\nb{c=\"d e\"} 2e+06\n\nnonsense\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
		}
		_, _ = io.WriteString(w, page)
	}))
	defer srv.Close()
	got, err := metricsAt(strings.TrimPrefix(srv.URL, "http://"))
	if err != nil || len(got) != 2 || got["a"] != 1.5 || got[`b{c="d e"}`] != 2e6 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := metricsAt(strings.TrimPrefix(srv.URL, "http://") + "/x"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a page that is not there: %v", err)
	}
	if _, err := metricsAt("127.0.0.1:1"); err == nil {
		t.Error("nobody answered")
	}
	if _, err := parseMetrics(strings.NewReader("a b\n")); err == nil || !strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("a value that is no number: %v", err)
	}
}
