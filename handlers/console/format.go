package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
)

// functions are what templates call.
func functions(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"ago":     func(t time.Time) string { return ago(now().Sub(t)) },
		"rfc":     func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"seconds": seconds,
		"bytes":   func(n any) string { return size(toFloat(n)) },
		"count":   func(n any) string { return group(fmt.Sprint(n)) },
		"perSec":  perSecond,
		"json":    indented,
		"lower":   strings.ToLower,
		"pieces":  pieces,
		"maxRows": func() int { return maxRows },
		"facts":   (*overview).facts, "states": (*overview).states, "protocols": (*overview).protocols,
		"stages": stages, "edges": edges,
		"clusterFacts": (*clusterView).facts, "nodes": (*clusterView).nodes, "partitions": (*clusterView).partitions, "choices": (*clusterView).choices,
	}
}

// pieces returns the parts of the name of a setting between which a line may break.
func pieces(name string) (list []string) {
	for part := range strings.SplitAfterSeq(name, ".") {
		list = append(list, strings.SplitAfter(part, "_")...)
	}
	return list
}

// ago returns how long ago something was, in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + seconds(-d.Seconds())
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s ago"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " d ago"
}

// seconds returns a time in a unit in which it has few digits.
func seconds(s float64) string {
	switch {
	case s <= 0:
		return "0"
	case s < 1e-3:
		return digits(s*1e6) + " µs"
	case s < 1:
		return digits(s*1e3) + " ms"
	case s < 120:
		return digits(s) + " s"
	case s < 2*3600:
		return digits(s/60) + " min"
	case s < 48*3600:
		return digits(s/3600) + " h"
	}
	return digits(s/86400) + " d"
}

// size returns a number of bytes.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return digits(n) + " " + units[i]
}

// perSecond returns a rate.
func perSecond(n float64) string { return digits(n) + "/s" }

// digits returns a number with about three digits.
func digits(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 9.995:
		return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(n, 'f', 2, 64), "0"), ".")
	case n < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	}
	return group(strconv.FormatFloat(n, 'f', 0, 64))
}

// group separates the thousands of a whole number.
func group(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

func toFloat(n any) float64 {
	f, _ := strconv.ParseFloat(fmt.Sprint(n), 64)
	return f
}

// maxDocument bounds a JSON document on a page, in bytes. The page as JSON has it whole.
const maxDocument = 256 << 10

// indented returns a JSON document for people.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	if b.Len() <= maxDocument {
		return b.String()
	}
	return strings.ToValidUTF8(b.String()[:maxDocument], "") + "\n… cut; the page as JSON has it whole"
}
