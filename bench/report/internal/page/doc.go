// Package page builds the benchmark page of the reports that the parts of ./bench left.
//
// The layout and the prose are in page.md.tmpl; why a goal is missed stands in missed.md of the
// notes, a line for each goal or part. Everything else comes from the reports.
package page
