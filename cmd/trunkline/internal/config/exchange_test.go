package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func loadExchange(sets []string, environ map[string]string) (HTTP, error) {
	return LoadExchange(sets, func(name string) (string, bool) { v, ok := environ[name]; return v, ok })
}

func TestExchangeLayers(t *testing.T) {
	env := func(key, v string) map[string]string { return map[string]string{envName(key): v} }
	f := func(body int, order string, sets []string, environ map[string]string) {
		t.Helper()
		h, err := loadExchange(sets, environ)
		if err != nil || h.MaxBodyBytes != body || strings.Join(h.DefaultStageOrder, ",") != order {
			t.Errorf("%v %v: %d %v, %v", sets, environ, h.MaxBodyBytes, h.DefaultStageOrder, err)
		}
	}
	const six = "perception,intent,plan,execution,critic,integration"
	f(5242880, six, nil, nil)
	f(7, six, nil, env(keyMaxBody, "7"))
	f(9, six, []string{keyMaxBody + "=8", keyMaxBody + "=9"}, env(keyMaxBody, "7"))
	f(5242880, "a,b", []string{keyStageOrder + "=a, b"}, env(keyStageOrder, "c"))
	f(5242880, "c", nil, env(keyStageOrder, "c"))
	f(5242880, six, nil, map[string]string{"TRUNKLINE_KERNEL_LOOPS": "x", "TRUNKLINE_NOPE": "1"})
}

func TestExchangeDefaultsAreTheServers(t *testing.T) {
	h, err := loadExchange(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, nil, nil, "")
	if h.MaxBodyBytes != c.HTTP.MaxBodyBytes || !slices.Equal(h.DefaultStageOrder, c.HTTP.DefaultStageOrder) {
		t.Errorf("commands %+v, server %+v", h, c.HTTP)
	}
}

func TestExchangeProblems(t *testing.T) {
	f := func(want string, environ map[string]string, sets ...string) {
		t.Helper()
		if _, err := loadExchange(sets, environ); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v: %v, want %q", sets, environ, err, want)
		}
	}
	name := envName(keyMaxBody)
	f(fmt.Sprintf(`cannot use http.max_body_bytes = "x" (env %s): want an integer from 1 to 1073741824`, name), map[string]string{name: "x"})
	f(`cannot use http.max_body_bytes = "0" (flag --set)`, nil, keyMaxBody+"=0")
	f(`cannot use http.default_stage_order = "a,,b" (flag --set): it has an empty entry`, nil, keyStageOrder+"=a,,b")
	f(`"a" is in it twice`, nil, keyStageOrder+"=a,a")
	f(`cannot use --set "kernel.loops=1": this command takes http.max_body_bytes=N and http.default_stage_order=LIST`, nil, "kernel.loops=1")
	f(`cannot use --set "http.max_body_bytes"`, nil, keyMaxBody)
}
