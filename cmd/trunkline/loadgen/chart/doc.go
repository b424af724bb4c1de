// Package chart draws figures as SVG pictures: lines over time, lines over sizes, and bars.
//
// A picture is static: it has no script, no font of its own and nothing from elsewhere. It follows
// the reader's light or dark theme. Lines differ by dash and by the shape of their points, for
// readers who do not see the colours apart; a title and a description with the figures stand for
// readers who see no picture. Texts are placed by an upper estimate of their width: a title that is
// too long is broken, and names that do not fit beside each other stand below each other. The same
// figures give the same bytes.
package chart
