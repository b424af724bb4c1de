// Package browser drives a Chromium without a window, for tests of pages. Tests skip where it is
// not installed, naming the packages.
package browser
