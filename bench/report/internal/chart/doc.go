// Package chart draws figures as small SVG pictures for a page that is read in a browser.
//
// All of them keep to a few rules. Figures stand on a linear axis that begins at zero. What grows
// by decades, rows from ten thousand to ten million, stands at even distances with its values
// written below, because a linear axis would push all but the last into one corner. Axes name their
// units. The ground is white, so that a picture can be read on a dark page as well. The same
// figures give the same bytes.
package chart
