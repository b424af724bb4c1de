package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// screensDir is the variable that names a directory for pictures of pages, for people to look at.
const screensDir = "TRUNKLINE_TEST_SCREENS"

// Console looks at the web console of a server, of which Base is the address.
type Console struct {
	*Browser
	Base string
}

// Show loads a page and checks that nothing of it failed.
func (c *Console) Show(path string) {
	c.t.Helper()
	c.Open(c.Base + path)
	c.Wait(`document.readyState === "complete"`)
	c.Quiet(path)
}

// Quiet checks that the browser has no complaint, and that no text became markup. path is the name
// of the page in errors.
func (c *Console) Quiet(path string) {
	c.t.Helper()
	for _, e := range c.Log() {
		c.t.Errorf("%s: console: %s", path, e.Message)
	}
	if c.Eval(`window.pwned === undefined && document.querySelectorAll("img, style, iframe, script:not([src='/console/console.js'])").length === 0`) != true {
		c.t.Errorf("%s: text became markup", path)
	}
}

// Looks looks at a page in both schemes, wide and narrow: all of it fits.
func (c *Console) Looks(path string) {
	c.t.Helper()
	var backs []any
	for _, scheme := range []string{"light", "dark"} {
		c.Prefer(scheme)
		backs = append(backs, c.Eval(`getComputedStyle(document.body).backgroundColor`))
		for _, width := range []int{1280, 400} {
			c.Resize(width, 900)
			if got := c.Eval(`document.documentElement.scrollWidth`); got.(float64) > float64(width) {
				c.t.Errorf("%s: %v pixels wide in a window of %d", path, got, width)
			}
			c.Picture(fmt.Sprintf("%s-%s-%d", path, scheme, width))
		}
	}
	if backs[0] == backs[1] {
		c.t.Errorf("%s: light and dark are both %v", path, backs[0])
	}
	c.Resize(1280, 900)
}

// Picture writes a picture of the window, if it is asked for.
func (c *Console) Picture(name string) {
	c.t.Helper()
	dir := os.Getenv(screensDir)
	if dir == "" {
		return
	}
	name = strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune("/?=%+", r) {
			return '_'
		}
		return r
	}, strings.TrimPrefix(name, "/console/")), "_")
	if err := os.WriteFile(filepath.Join(dir, name[:min(len(name), 80)]+".png"), c.screenshot(), 0o644); err != nil {
		c.t.Fatal(err)
	}
}
