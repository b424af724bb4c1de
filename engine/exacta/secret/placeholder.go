package secret

import (
	"bytes"
	"strings"
)

// What stands for a credential in source and documentation. Nothing that a server would accept has
// one of the first two forms.
var (
	// codeEnds is the end of a literal, where code adds the value: "Authorization: Basic "+auth.
	codeEnds = lazy("^\\\\?[\"'`](?:$|[),;\\]}:\\\\]|[+.&](?:$|\\$?" + nameWord + "(?:[_.]" + nameWord + "){0,7}\\d{0,2}(?:$|\\+[\"'`]|[^\\w.+/=~\"'`-])))")
	// variable is $TOKEN, ${token}, $(cat, <your-token>, {{ token, %s, [TOKEN], ***, ... and alike:
	// a name has words of one case or with few humps, and no more than two digits at its end.
	variable = lazy("^\\\\?[\"'`]?(?:[$<{%\\[#@(]+(?:$|(?:" + nameWord + "(?:[_.:-]" + nameWord + "){0,7}\\d{0,2}[)}\\]>%]*s?|[)}\\]>%]+)" + closed + ")|(?:[*.xX]{3,}|…)" + closed + ")")
	// plain is a value without any of these signs around it.
	plain = lazy("^\\\\?[\"'`]?([A-Za-z0-9._~+/=-]+)" + ends)
	// joined is the end of a literal and another one, which code joins to it; the line of the other
	// one may begin with the sign of a diff.
	joined = lazy("^\\\\?[\"'`]\\s*(?:[+.&]\\s*){0,2}[\"'`]([A-Za-z0-9._~+/=-]{8,})[\"'`\\\\]")
	words  = lazy(`[A-Z]+(?:[a-z]+)?|[a-z]+`)
)

// Parts of the expressions.
const (
	nameWord = `(?:[A-Z]{1,12}|[A-Za-z][a-z]{0,12}(?:[A-Z][a-z]{1,12}){0,3})`
	ends     = "(?:$|[\"'`,;)}>\\]\\\\])"
	closed   = "(?:$|[\"'`,;\\\\])" // behind closing brackets
)

// placeholderWords are what people write in the place of a credential.
const placeholderWords = " access account admin ant anthropic api apikey app auth authorization base basic bearer client code credential credentials" +
	" demo dummy encoded fake foo bar baz bot from generated github gitlab goes google here id insert invalid jwt key my oauth openai pass" +
	" password pat paste personal placeholder proj put redacted replace sample secret server service session slack some string stripe test the" +
	" this to token tokens accesstoken apitoken authtoken mytoken yourtoken user username value with your "

// maxPlaceholder bounds the text of words that stands for a credential, in bytes. Find looks into
// it once more, so a bound keeps that linear.
const maxPlaceholder = 256

// continues reports whether a text begins with the end of a literal, and a credential in the one
// that code joins to it: "Authorization: Bearer " + "h480djs93hd8".
func continues(text []byte) bool {
	m := joined().FindSubmatch(text)
	return m != nil && !placeholder(m[1])
}

// placeholder reports whether the value of a match only stands for a credential: a variable, words
// such as YOUR_TOKEN or my-api-key, a run of x, a text with "example".
func placeholder(value []byte) bool {
	if codeEnds().Match(value) || variable().Match(value) {
		return true
	}
	m := plain().FindSubmatch(value)
	if m == nil {
		return false
	}
	text := m[1]
	if len(text) > maxPlaceholder {
		return false
	}
	if containsFold(text, "example") {
		return true
	}
	known, found := 0, words().FindAll(text, -1)
	for _, w := range found {
		w := strings.ToLower(string(w))
		if strings.Contains(placeholderWords, " "+w+" ") || len(w) > 2 && strings.Trim(w, "x") == "" {
			known++
		} else if len(w) > 12 {
			return false
		}
	}
	digits := 0
	for _, c := range words().ReplaceAll(text, nil) {
		if '0' <= c && c <= '9' {
			digits++
		} else if c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	if digits > 2 || len(found) == 0 {
		return false
	}
	capitals := bytes.Equal(text, bytes.ToUpper(text))
	return known == len(found) || capitals && digits == 0 && (known > 0 || 2 < len(text) && len(text) < 10)
}
