package chart

import (
	"encoding/xml"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Kind is how an axis places its values.
type Kind int

// The kinds of axes.
const (
	Linear    Kind = iota // from zero
	Ranging               // from zero, or logarithmic where the values span decades
	Sizes                 // marked at the values alone; logarithmic where they span decades
	ByteSizes             // Sizes in bytes
)

// Axis is one axis of a panel.
type Axis struct {
	Name string // with its unit
	Kind Kind
	End  float64 // where a Linear axis ends exactly; 0: at the next round value
}

const (
	// How many times the least value the greatest one is where an axis becomes logarithmic: that of
	// lines, that of bars, whose lengths are compared, and that of sizes along the bottom.
	lineSpread, barSpread, sizeSpread = 12.0, 30.0, 8.0
	// sizeMargin is the room beside the first and the last size, as a share of the axis.
	sizeMargin = 0.06
	upTicks    = 4  // of an upright linear axis, about
	timeTicks  = 8  // of a linear axis along the bottom, about
	mostTicks  = 20 // of any linear axis
	// mostDecades is how many decades are marked each.
	mostDecades = 8
)

// tick is a marked value.
type tick struct {
	value float64
	label string
}

// scale places values between 0 and 1.
type scale struct {
	log       bool
	low, high float64 // the values at 0 and 1; their logarithms if log is set
	ticks     []tick
}

// at is the place of v; what lies outside of the axis stands at its end.
func (s *scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v) // of 0: far below the axis
	}
	return min(max((v-s.low)/(s.high-s.low), 0), 1)
}

// upright is the scale of figures.
func upright(a Axis, values []float64, spread float64) scale {
	low, high := bounds(values)
	if a.Kind == Ranging && low > 0 && high > low*spread {
		return decades(low, high)
	}
	return linear(high, 0, upTicks)
}

// bottom is the scale along the bottom.
func bottom(a Axis, values []float64) scale {
	if a.Kind == Sizes || a.Kind == ByteSizes {
		return sizes(values, a.Kind == ByteSizes)
	}
	_, high := bounds(values)
	return linear(high, a.End, timeTicks)
}

// bounds are the least value above zero and the greatest one.
func bounds(values []float64) (low, high float64) {
	for _, v := range values {
		if v > 0 && (low == 0 || v < low) {
			low = v
		}
		high = max(high, v)
	}
	return low, high
}

// linear holds values from zero to most, or to end exactly, with about so many ticks at steps of 1,
// 2 or 5 times a power of ten.
func linear(most, end float64, about int) scale {
	if end > 0 {
		most = end
	}
	if !(most > 0) || math.IsInf(most, 0) {
		most, end = 1, 0
	}
	step := roundUp(most / float64(about))
	s := scale{high: step * math.Ceil(most/step*(1-1e-9))}
	if end > 0 {
		s.high = end
	}
	digits := 0
	if step < 1 {
		digits = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	for i := 0; float64(i)*step <= s.high*(1+1e-9) && i <= mostTicks; i++ {
		v := float64(i) * step
		s.ticks = append(s.ticks, tick{v, fixed(v, digits)})
	}
	return s
}

// roundUp is the least of 1, 2 and 5 times a power of ten that is v or more.
func roundUp(v float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*step >= v*(1-1e-9) {
			return m * step
		}
	}
	return 10 * step
}

// decades is logarithmic from below low to above high, both round, with a tick at each decade; also
// at 2 and 5 where there are few, and not at each where there are many.
func decades(low, high float64) scale {
	from, to := 1/roundUp(1/low), roundUp(high)
	s := scale{log: true, low: math.Log10(from), high: math.Log10(to)}
	steps := []float64{1, 2, 5}
	if s.high-s.low > 2.5 {
		steps = steps[:1]
	}
	every := max(1, math.Ceil((s.high-s.low)/mostDecades))
	for e := math.Floor(s.low); e <= s.high+1e-9; e += every {
		for _, m := range steps {
			if v := m * math.Pow(10, e); v >= from*(1-1e-9) && v <= to*(1+1e-9) {
				s.ticks = append(s.ticks, tick{v, Figure(v)})
			}
		}
	}
	return s
}

// sizes has its ticks at the values.
func sizes(values []float64, bytes bool) scale {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	var s scale
	write := short
	if bytes {
		write = shortBytes
	}
	for _, v := range values {
		s.ticks = append(s.ticks, tick{v, write(v)})
	}
	if len(values) == 0 {
		return linear(0, 0, upTicks)
	}
	s.high = values[len(values)-1]
	if values[0] > 0 && s.high >= sizeSpread*values[0] {
		s.log, s.low, s.high = true, math.Log10(values[0]), math.Log10(s.high)
		room := (s.high - s.low) * sizeMargin
		s.low, s.high = s.low-room, s.high+room
		return s
	}
	s.low, s.high = min(values[0], 0), s.high*(1+sizeMargin)
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

// Style is how a line or a row of bars looks: a colour, a dash and the shape of its points.
type Style int

// The styles. What is beyond them begins again.
const (
	Blue Style = iota
	Amber
	Green
	Violet
	Red
	Teal
	Pink
	Grey
)

// looks are the colours of both themes, written out for each: not every program that shows SVG
// knows variables. A shape is a path that begins where its point stands; a name is a class.
var looks = []struct{ name, light, dark, dash, shape string }{
	Blue:   {"blue", "#0969da", "#58a6ff", "", "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"},
	Amber:  {"amber", "#9a6700", "#e3b341", "10 3 2 3", "m-3.5-3.5h7v7h-7z"},
	Green:  {"green", "#1a7f37", "#3fb950", "16 3", "m0-4.5l4.5 8h-9z"},
	Violet: {"violet", "#8250df", "#bc8cff", "8 4", "m0-5l4.5 5-4.5 5-4.5-5z"},
	Red:    {"red", "#cf222e", "#ff7b72", "6 3", "m0 4.5l-4.5-8h9z"},
	Teal:   {"teal", "#0b7285", "#39c5cf", "3 2", "m-1.4-4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2z"},
	Pink:   {"pink", "#bf3989", "#ff80c8", "2 3 8 3", "m0-1.9l2.7-2.7 1.9 1.9-2.7 2.7 2.7 2.7-1.9 1.9-2.7-2.7-2.7 2.7-1.9-1.9 2.7-2.7-2.7-2.7 1.9-1.9z"},
	Grey:   {"grey", "#6e7781", "#9198a1", "2 4", "m-5-1.5h10v3h-10z"},
}

func (s Style) class() string { return looks[int(s)%len(looks)].name }
func (s Style) shape() string { return looks[int(s)%len(looks)].shape }

// sheet is the style sheet. Colours of lines are of lesser rank than that lines are not filled.
func sheet() string {
	var b, light, dark strings.Builder
	for _, l := range looks {
		light.WriteString("." + l.name + "{stroke:" + l.light + ";fill:" + l.light + "}")
		dark.WriteString("." + l.name + "{stroke:" + l.dark + ";fill:" + l.dark + "}")
		if l.dash != "" {
			b.WriteString("path.line." + l.name + "{stroke-dasharray:" + l.dash + "}")
		}
	}
	return `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.h1{font-size:17px;font-weight:600}.h2{font-size:14px;font-weight:600}.mid{text-anchor:middle}.end{text-anchor:end}
path.line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}path.ours{stroke-width:3}path.mark,rect.bar{stroke:none}
` + b.String() + `
.bg{fill:#fff}.over{paint-order:stroke;stroke:#fff;stroke-width:4px}text{fill:#1f2328}.tick,.soft{fill:#59636e}.grid{stroke:#d8dee4}.base{stroke:#59636e}
` + light.String() + `
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.over{stroke:#0d1117}text{fill:#e6edf3}.tick,.soft{fill:#9198a1}.grid{stroke:#30363d}.base{stroke:#9198a1}
` + dark.String() + `
}
</style>
`
}

// Sizes of letters in pixels, as in the styles.
const (
	headSize  = 17.0
	titleSize = 14.0
	textSize  = 12.0
)

// advance is how wide a letter is at most in the widest of the fonts that a picture may be shown
// with, as a share of its size.
func advance(r rune) float64 {
	switch {
	case strings.ContainsRune("iljI|.,:;'!·", r):
		return 0.34
	case strings.ContainsRune(" ftr()[]/-", r):
		return 0.42
	case strings.ContainsRune("mwMW@%—…→", r):
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100:
		return 1.4
	case unicode.IsUpper(r):
		return 0.78
	}
	return 0.64
}

// width is how many pixels a text takes at most.
func width(s string, size float64) (w float64) {
	for _, r := range s {
		w += size * advance(r)
	}
	return w
}

// wrap breaks s at spaces into lines of at most so many pixels, and words that are longer within.
func wrap(s string, size, pixels float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && width(line+" "+word, size) <= pixels {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for width(word, size) > pixels {
			n, w := len(word), 0.0 // what fits of it: one letter at least
			for i, r := range word {
				if w += size * advance(r); w > pixels && i > 0 {
					n = i
					break
				}
			}
			lines, word = append(lines, word[:n]), word[n:]
		}
		line = word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// num is a place in pixels, to a tenth.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// Figure writes v in short: three significant digits, whole numbers whole, thousands apart.
func Figure(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 99.95 {
		digits = min(12, 2-int(math.Floor(math.Log10(a))))
	}
	s := fixed(v, digits)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// fixed writes v with so many digits behind the point, thousands apart.
func fixed(v float64, digits int) string { return Thousands(strconv.FormatFloat(v, 'f', digits, 64)) }

// Thousands sets the thousands of a decimal number apart: 1,234,567.8.
func Thousands(s string) string {
	point := strings.IndexByte(s, '.')
	if point < 0 {
		point = len(s)
	}
	for i := point - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a size in few letters: 100, 1024, 10k, 1M.
func short(v float64) string {
	switch {
	case v >= 999_500:
		return Figure(v/1e6) + "M"
	case v >= 10_000 || v > 0 && math.Mod(v, 1000) == 0:
		return Figure(v/1e3) + "k"
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return Figure(v)
}

// shortBytes is short for a number of bytes.
func shortBytes(v float64) string {
	switch {
	case v >= 1<<20:
		return Figure(v/(1<<20)) + " MiB"
	case v >= 1<<10:
		return Figure(v/(1<<10)) + " KiB"
	}
	return Figure(v) + " B"
}
