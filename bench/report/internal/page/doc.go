// Package page makes the benchmark page of what was measured: Markdown, and the charts that it
// shows.
//
// The order of the page is in page.md.tmpl. Tables and charts come from the figures, prose from
// notes: a note is a Markdown file that is written about one section ("store"), about what was
// found in it ("store-found"), or about why one goal is missed ("G1"). What was not measured is
// marked on the page, and a note that is not there leaves nothing behind. The same figures and
// notes give the same bytes.
package page
