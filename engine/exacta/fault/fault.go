// Package fault is the closed set of errors of projects (exacta §3.7): codes, what they mean to a
// client, and the templates of their messages.
package fault

import "strings"

// Fault is one error. Its code decides everything but the values in its message and the detail.
type Fault struct {
	Code   string
	Values []string // of the places in the template, in their order
	Detail string   // for people who look closer: redacted, at most maxDetail bytes
}

// New returns a fault with a detail.
func New(code, detail string, values ...string) *Fault {
	return &Fault{Code: code, Values: values, Detail: detail}
}

// Hidden returns the fault with what redact leaves of its values and its detail.
func (f *Fault) Hidden(redact func(text string) string) *Fault {
	hidden := &Fault{Code: f.Code, Detail: redact(f.Detail)}
	for _, v := range f.Values {
		hidden.Values = append(hidden.Values, redact(v))
	}
	return hidden
}

// Error implements error.
func (f *Fault) Error() string { return f.Code + ": " + f.Message() + " " + f.Detail }

// Row is what a code means.
type Row struct {
	Code, Category, Severity, Recovery string
	Retryable                          bool
	Template                           string
}

// Row returns the row of the fault's code.
func (f *Fault) Row() *Row { return Lookup(f.Code) }

// Lookup returns the row of a code, nil if there is none.
func Lookup(code string) *Row {
	for i := range rows {
		if rows[i].Code == code {
			return &rows[i]
		}
	}
	return nil
}

// Index returns the place of a code in Codes, 0 where it is not there. It does not allocate.
func Index(code string) int {
	for i := range rows {
		if rows[i].Code == code {
			return i + 1
		}
	}
	return 0
}

// Codes returns "", which stands for no error, and all codes.
func Codes() []string {
	codes := []string{""}
	for i := range rows {
		codes = append(codes, rows[i].Code)
	}
	return codes
}

// Message fills the template.
func (f *Fault) Message() string {
	row := f.Row()
	if row == nil {
		return ""
	}
	var b strings.Builder
	rest := row.Template
	for _, v := range f.Values {
		before, behind, ok := strings.Cut(rest, "{")
		if !ok {
			break
		}
		_, rest, _ = strings.Cut(behind, "}")
		b.WriteString(before)
		b.WriteString(v)
	}
	b.WriteString(rest)
	return b.String()
}
