package planner

// Types of intents (exacta §4.3).
const (
	createProject = "CreateProject"
	addFeature    = "AddFeature"
	fixBug        = "FixBug"
	buildPackage  = "BuildPackage"
	UnknownIntent = "UnknownIntent"
)

// IsIntent reports whether t is one of the types.
func IsIntent(t string) bool {
	return t == createProject || t == addFeature || t == fixBug || t == buildPackage || t == UnknownIntent
}

// leaning is a list of words that speak for a type.
type leaning struct{ intent, words string }

// leanings are in the order in which a tie is decided. They are not written.
var leanings = []leaning{
	{fixBug, " fix bug repair correct resolve debug crash crashes crashing broken fails failing" +
		" failure error exception wrong incorrect regression leak hang "},
	{addFeature, " add implement introduce support create write extend enable include provide" +
		" insert append "},
	{buildPackage, " build compile package bundle installer msi nsis publish release artifact "},
}

// intent returns the type of the request and how sure that is.
func (r *request) intent(c *Config, s *symbols) (intent string, confidence float64) {
	if len(r.forms) > 0 {
		return r.formsIntent(c)
	}
	scores := r.scores()
	best := 0
	for i := range scores {
		if scores[i].points > scores[best].points {
			best = i
		}
	}
	if scores[best].points == 0 {
		return UnknownIntent, 0
	}
	hundredths := 50
	if scores[best].first {
		hundredths += 20
	}
	if s.single || r.names(r.tree.Exists) {
		hundredths += 15
	}
	for i := range scores {
		if i != best && scores[i].points == scores[best].points {
			hundredths -= 20
			break
		}
	}
	if s.several {
		hundredths -= 15
	}
	return leanings[best].intent, float64(hundredths) / 100
}

// formsIntent is intent for a request with forms.
func (r *request) formsIntent(c *Config) (intent string, confidence float64) {
	intent, known := r.kind()
	if !known {
		return UnknownIntent, 0
	}
	made := map[string]bool{}
	for i := range r.forms {
		if !r.fits(&r.forms[i], made, intent, c) {
			return intent, 0.60
		}
	}
	return intent, 0.95
}

// kind returns the type that the forms of a request have together. known is false if they cannot
// stand together: a new project and any other edit.
func (r *request) kind() (intent string, known bool) {
	intent = buildPackage
	changes, project := 0, false
	for i := range r.forms {
		if f := &r.forms[i]; f.do != runBuild {
			if changes == 0 {
				intent = f.do.intent()
			}
			changes++
			project = project || f.do == newProject
		}
	}
	return intent, !project || changes == 1
}

// fits reports whether a form fits the tree. made has the files that earlier forms create.
func (r *request) fits(f *form, made map[string]bool, intent string, c *Config) bool {
	switch f.do {
	case runBuild:
		return c.Toolchain != "" || intent == createProject
	case newProject:
		for _, m := range r.tree.Markers() {
			if m != ".exacta" && m != ".git" {
				return false
			}
		}
		return f.template() != ""
	case createFile:
		for _, p := range f.paths {
			if made[p] || r.tree.Exists(p) {
				return false
			}
			made[p] = true
		}
		return true
	}
	for _, p := range f.paths {
		if !made[p] && !r.tree.Exists(p) {
			return false
		}
	}
	return true
}

// names reports whether a path that the request names passes a test.
func (r *request) names(test func(string) bool) bool {
	for _, p := range r.paths() {
		if test(p) {
			return true
		}
	}
	return false
}

// score is what speaks for a type.
type score struct {
	points int
	first  bool // the first word is in its list
}

// scores counts the words of each leaning, each once.
func (r *request) scores() [3]score {
	var out [3]score
	seen := map[string]bool{}
	led := false
	for _, c := range r.clauses {
		for i := range c {
			if t := &c[i]; t.kind == word && !seen[t.low] {
				seen[t.low] = true
				for n := range leanings {
					if t.in(leanings[n].words) {
						out[n].points++
					}
				}
			}
		}
		if c = c.skip(filler); led || len(c) == 0 || c[0].kind != word {
			continue
		}
		led = true
		for n := range leanings {
			if c[0].in(leanings[n].words) {
				out[n].points += 2
				out[n].first = true
			}
		}
	}
	return out
}
